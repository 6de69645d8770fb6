package checkcli

import (
	"cmp"
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/check"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/step"
)

// ours selects the operator's Deployment and pods.
var ours = client.MatchingLabels{"app.kubernetes.io/name": "oooi", "app.kubernetes.io/component": "manager"}

// operator reads the operator, and what it alone makes.
func (r *Reader) operator(ctx context.Context, f *check.Facts) {
	f.Deployment = r.deployment(ctx)
	f.Lease = get(ctx, r, &coordinationv1.Lease{}, "leases", r.Namespace, check.LeaseName)
	f.Webhook = get(ctx, r, &admissionregistrationv1.ValidatingWebhookConfiguration{}, "validatingwebhookconfigurations", "", names.Webhook)
	d := f.Deployment.Is
	if d == nil {
		return
	}
	var err error
	if f.Manager, err = r.managerOf(d); err != nil {
		f.Deployment.Unread = err.Error()
		return
	}
	pods := &corev1.PodList{}
	of := list(ctx, r, "", "pods", r.Namespace, pods, func() []corev1.Pod { return pods.Items }, ours)
	f.PodWaits = cmp.Or(of.Unread, check.PodWaits(of.Is))
	f.Denied = r.lacks(ctx, f.Manager.Needed(r.Namespace), account(d))
	f.Daemons = r.daemons(ctx)
	if f.Manager.Overrides {
		f.Overrides = r.overrides(ctx)
	}
	if f.Webhook.Is != nil && d.Status.AvailableReplicas > 0 {
		f.Served = r.served(ctx, f.Webhook.Is)
	}
}

func (r *Reader) deployment(ctx context.Context) step.Read[*appsv1.Deployment] {
	all := &appsv1.DeploymentList{}
	err := r.api.List(ctx, all, client.InNamespace(r.Namespace), ours)
	got := read[*appsv1.Deployment](nil, check.Right{Verb: "list", Group: "apps", Resource: "deployments", Namespace: r.Namespace}, err)
	if err == nil && len(all.Items) > 0 {
		got.Is = &all.Items[0]
	}
	return got
}

// managerOf understands a Deployment.
func (r *Reader) managerOf(d *appsv1.Deployment) (check.Manager, error) {
	if len(d.Spec.Template.Spec.Containers) == 0 {
		return check.Manager{}, errors.New("its Deployment has no container")
	}
	c := d.Spec.Template.Spec.Containers[0]
	m, err := r.Manager(c.Args)
	for _, e := range c.Env {
		switch {
		case e.Name == "RELATED_IMAGE_OOOI" && m.Image == "":
			m.Image = e.Value
		case e.Name == "RELATED_IMAGE_ENVOY" && m.Envoy == "":
			m.Envoy = e.Value
		}
	}
	return m, err
}

// get reads one object; nil if it does not exist.
func get[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r *Reader, into P, resource, namespace, name string) step.Read[P] {
	err := r.api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into)
	gvk, _ := r.api.GroupVersionKindFor(into)
	got := read[P](nil, check.Right{Verb: "get", Group: gvk.Group, Resource: resource, Name: name, Namespace: namespace}, err)
	if err == nil {
		got.Is = into
	}
	return got
}

// daemons are the workloads that the operator made.
func (r *Reader) daemons(ctx context.Context) step.Read[[]check.Workload] {
	made := client.MatchingLabels{names.LabelManagedBy: names.ManagedBy}
	deployments, sets := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}
	for resource, into := range map[string]client.ObjectList{"deployments": deployments, "statefulsets": sets} {
		err := r.api.List(ctx, into, client.InNamespace(r.Only), made)
		if w := why(check.Right{Verb: "list", Group: "apps", Resource: resource, Namespace: r.Only}, err); w != "" {
			return step.Read[[]check.Workload]{Unread: w}
		}
	}
	var all []check.Workload
	for _, d := range deployments.Items {
		all = append(all, check.Workload{Kind: "Deployment", Namespace: d.Namespace, Name: d.Name, Images: imagesOf(d.Spec.Template.Spec)})
	}
	for _, s := range sets.Items {
		all = append(all, check.Workload{Kind: "StatefulSet", Namespace: s.Namespace, Name: s.Name, Images: imagesOf(s.Spec.Template.Spec)})
	}
	return step.Read[[]check.Workload]{Is: all}
}

func imagesOf(p corev1.PodSpec) (all []string) {
	for _, c := range append(p.InitContainers, p.Containers...) {
		all = append(all, c.Image)
	}
	return all
}

// subject is whose rights are asked for; nil: the caller's own.
type subject struct {
	user   string
	groups []string
}

// account is the operator's, as the API server knows it.
func account(d *appsv1.Deployment) *subject {
	return &subject{
		"system:serviceaccount:" + d.Namespace + ":" + d.Spec.Template.Spec.ServiceAccountName,
		[]string{"system:serviceaccounts", "system:serviceaccounts:" + d.Namespace, "system:authenticated"},
	}
}

// at a time, so that a slow API server is not asked more.
const atATime = 8

// lacks asks the API server which of some rights somebody lacks.
func (r *Reader) lacks(ctx context.Context, rights []check.Right, who *subject) step.Read[[]string] {
	denied := make([]bool, len(rights))
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(atATime)
	for i, right := range rights {
		all.Go(func() error {
			allowed, err := r.may(ctx, right, who)
			denied[i] = !allowed
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return step.Read[[]string]{Unread: why(check.Right{Verb: "create", Group: authorizationv1.GroupName, Resource: "subjectaccessreviews"}, err)}
	}
	var got step.Read[[]string]
	for i, right := range rights {
		if denied[i] {
			got.Is = append(got.Is, right.String())
		}
	}
	return got
}

func (r *Reader) may(ctx context.Context, right check.Right, who *subject) (bool, error) {
	resource, sub := right.Split()
	asks := &authorizationv1.ResourceAttributes{Verb: right.Verb, Group: right.Group, Resource: resource, Subresource: sub, Name: right.Name, Namespace: right.Namespace}
	if who == nil { // which everybody may ask
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: asks}}
		err := r.api.Create(ctx, review)
		return review.Status.Allowed, err
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: asks, User: who.user, Groups: who.groups}}
	err := r.api.Create(ctx, review)
	return review.Status.Allowed, err
}
