package sysdump

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Bounds of a dump: the newest of each log, in octets, and the first of each kind of object, and of events.
const (
	mostLog     = 4 << 20
	mostObjects = 2000
	mostEvents  = 10000
	page        = 500
)

// Dump collects.
type Dump struct {
	API client.Reader
	// Logs reads containers' logs.
	Logs typedcore.PodsGetter
	// Namespace to collect from, and from what its Infras and HostedClusters depend on; empty: all. What has no namespace is collected in any
	// case.
	Namespace string
	// Version of this program, and of the cluster.
	Version string
	// Tell hears what is being collected.
	Tell func(string)

	archive *tar.Writer
	now     time.Time
	around  around
	notRead []string // what the caller may not read, or what did not answer
	absent  []string // what the cluster does not serve
}

// Write collects into an archive (tar, gzip). What may not be read is listed in the archive, and returned. An error is one of writing.
func (d *Dump) Write(ctx context.Context, to io.Writer, now time.Time) (notRead []string, err error) {
	compressed := gzip.NewWriter(to)
	d.archive, d.now, d.around = tar.NewWriter(compressed), now, d.lookAround(ctx)
	err = d.all(ctx)
	return d.notRead, errors.Join(err, d.archive.Close(), compressed.Close())
}

func (d *Dump) all(ctx context.Context) error {
	if err := d.file("version.txt", d.Version+"\ncollected "+d.now.UTC().Format(time.RFC3339)+"\n"); err != nil {
		return err
	}
	for _, k := range kinds {
		if err := d.objects(ctx, k); err != nil {
			return err
		}
	}
	if err := errors.Join(d.events(ctx), d.logs(ctx)); err != nil {
		return err
	}
	if d.Namespace != "" {
		d.notRead = append(d.notRead, "other namespaces than "+strings.Join(d.places(kind{}), ", ")+": the operator's, which has its log, among them")
	}
	return d.file("not-read.txt", strings.Join(append(append(d.notRead, d.absent...), ""), "\n"))
}

func (d *Dump) file(name, text string) error {
	header := &tar.Header{Name: "oooi-sysdump/" + name, Mode: 0o644, Size: int64(len(text)), ModTime: d.now, Format: tar.FormatPAX}
	if err := d.archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.WriteString(d.archive, text)
	return err
}

// unread notes why something could not be read.
func (d *Dump) unread(what string, err error) {
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		d.absent = append(d.absent, what+": the cluster does not serve them")
		return
	case apierrors.IsForbidden(err):
		what += ": you may not list them"
	default:
		what += ": " + redactText(err.Error())
	}
	d.notRead = append(d.notRead, what)
}

func (d *Dump) objects(ctx context.Context, k kind) error {
	d.Tell(k.Kind)
	seen := map[string]bool{}
	var text strings.Builder
	for _, namespace := range d.places(k) {
		for _, labels := range k.selections() {
			err := d.each(ctx, k, []client.ListOption{labels, client.InNamespace(namespace)}, func(o *unstructured.Unstructured) error {
				if id := o.GetNamespace() + "/" + o.GetName(); seen[id] {
					return nil
				} else {
					seen[id] = true
				}
				if k.Kind == "CustomResourceDefinition" { // which version is served is asked for, not its schema
					withoutSchemas(o.Object)
				}
				redactObject(o.Object)
				content, err := yaml.Marshal(o.Object)
				text.WriteString("---\n")
				text.Write(content)
				return err
			})
			if err != nil { // what was read until then is kept
				d.unread(d.beyond(k.GroupKind().String(), namespace), err)
				break
			}
		}
	}
	if len(seen) == 0 {
		return nil
	}
	return d.file("objects/"+strings.TrimSuffix(k.Kind+"."+k.Group, ".")+".yaml", text.String())
}

// each gives the objects of a kind to take, page by page.
func (d *Dump) each(ctx context.Context, k kind, options []client.ListOption, take func(*unstructured.Unstructured) error) error {
	for next, read := "", 0; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		if err := d.API.List(ctx, list, append(options, client.Limit(page), client.Continue(next))...); err != nil {
			return err
		}
		for i := range list.Items {
			if err := take(&list.Items[i]); err != nil {
				return err
			}
		}
		read += len(list.Items)
		if next = list.GetContinue(); next == "" {
			return nil
		}
		if read >= mostObjects {
			d.notRead = append(d.notRead, fmt.Sprintf("%s: there are more than %d; the first are here", k.GroupKind(), read))
			return nil
		}
	}
}

// withoutSchemas leaves of a CustomResourceDefinition which versions are served and stored.
func withoutSchemas(crd map[string]any) {
	unstructured.RemoveNestedField(crd, "spec", "conversion")
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	for _, v := range versions {
		if version, is := v.(map[string]any); is {
			delete(version, "schema")
		}
	}
	_ = unstructured.SetNestedSlice(crd, versions, "spec", "versions") // it is one: it was read so
}

// events are all of the namespaces: what a pod or a node says of itself belongs to them.
func (d *Dump) events(ctx context.Context) error {
	d.Tell("Events")
	var text strings.Builder
	for _, namespace := range d.places(kind{}) {
		d.eventsOf(ctx, namespace, &text)
	}
	return d.file("events.txt", text.String())
}

func (d *Dump) eventsOf(ctx context.Context, namespace string, text *strings.Builder) {
	what := d.beyond("Event.events.k8s.io", namespace)
	for next, read := "", 0; ; {
		list := &eventsv1.EventList{}
		if err := d.API.List(ctx, list, client.InNamespace(namespace), client.Limit(page), client.Continue(next)); err != nil {
			d.unread(what, err)
			return
		}
		for i := range list.Items {
			text.WriteString(eventLine(&list.Items[i]))
		}
		read += len(list.Items)
		if next = list.Continue; next == "" {
			return
		}
		if read >= mostEvents {
			d.notRead = append(d.notRead, fmt.Sprintf("%s: there are more than %d; the first are here", what, read))
			return
		}
	}
}

func eventLine(e *eventsv1.Event) string {
	at := e.EventTime.Time
	if at.IsZero() {
		at = e.DeprecatedLastTimestamp.Time
	}
	return fmt.Sprintf("%s %s %s %s/%s %s: %s\n", at.UTC().Format(time.RFC3339), e.Type, e.Regarding.Kind, e.Regarding.Namespace, e.Regarding.Name, e.Reason, redactText(e.Note))
}

// logs are those of the operator's and the daemons' containers, which run beside their Infra, and of each container that was started again the one before.
func (d *Dump) logs(ctx context.Context) error {
	d.Tell("logs")
	seen := map[string]bool{}
	for _, labels := range (kind{ours: true}).selections() {
		pods := &corev1.PodList{}
		if err := d.API.List(ctx, pods, labels, client.InNamespace(d.Namespace)); err != nil {
			d.unread("logs", err)
			return nil
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if seen[pod.Namespace+"/"+pod.Name] {
				continue
			}
			seen[pod.Namespace+"/"+pod.Name] = true
			for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
				if err := d.log(ctx, pod, c); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (d *Dump) log(ctx context.Context, pod *corev1.Pod, c corev1.ContainerStatus) error {
	for _, previous := range []bool{false, true} {
		if previous && c.RestartCount == 0 {
			continue
		}
		name := fmt.Sprintf("logs/%s/%s/%s", pod.Namespace, pod.Name, c.Name)
		if previous {
			name += ".previous"
		}
		text, err := d.tail(ctx, pod, &corev1.PodLogOptions{Container: c.Name, Previous: previous, TailLines: new(int64(20000)), Timestamps: true})
		if err != nil {
			d.unread(name, err)
			continue
		}
		if err := d.file(name+".log", redactText(text)); err != nil {
			return err
		}
	}
	return nil
}

// tail is the end of a log. The kubelet's own limit of octets (limitBytes) would keep its beginning.
func (d *Dump) tail(ctx context.Context, pod *corev1.Pod, options *corev1.PodLogOptions) (string, error) {
	stream, err := d.Logs.Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	var end tail
	_, err = io.Copy(&end, stream)
	return string(end[max(0, len(end)-mostLog):]), err
}

// tail keeps the last mostLog octets that are written to it.
type tail []byte

// Write implements io.Writer.
func (t *tail) Write(octets []byte) (int, error) {
	*t = append(*t, octets...)
	if len(*t) > 2*mostLog {
		*t = append((*t)[:0], (*t)[len(*t)-mostLog:]...)
	}
	return len(octets), nil
}
