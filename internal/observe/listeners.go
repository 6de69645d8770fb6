package observe

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Listeners know which Infras have read a namespace and are woken by changes there. A namespace is noted before it is read, so no change is
// missed.
type Listeners struct {
	mu          sync.Mutex
	byNamespace map[string]map[types.NamespacedName]bool
}

// NewListeners begins with none.
func NewListeners() *Listeners {
	return &Listeners{byNamespace: map[string]map[types.NamespacedName]bool{}}
}

// Hear notes that an Infra reads namespaces.
func (l *Listeners) Hear(infra types.NamespacedName, namespaces ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range namespaces {
		if l.byNamespace[n] == nil {
			l.byNamespace[n] = map[types.NamespacedName]bool{}
		}
		l.byNamespace[n][infra] = true
	}
}

// Of are the Infras that read a namespace.
func (l *Listeners) Of(namespace string) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []types.NamespacedName
	for infra := range l.byNamespace[namespace] {
		all = append(all, infra)
	}
	return all
}

// Forget drops an Infra that is gone.
func (l *Listeners) Forget(infra types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, all := range l.byNamespace {
		if delete(all, infra); len(all) == 0 {
			delete(l.byNamespace, n)
		}
	}
}
