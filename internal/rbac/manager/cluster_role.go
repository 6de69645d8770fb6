// Package manager says what the operator may do whichever API groups it serves: `make generate` writes it into
// config/rbac/role.yaml. No rule of these packages names a Secret, grants bind or escalate, or has a wildcard.
package manager

// Who may read the manager's metrics, and who may refer to another namespace.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Its own events, which events.k8s.io counts by patching.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
