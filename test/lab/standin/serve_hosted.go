package standin

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ServeHostedObjects keeps a directory's objects applied in the hosted cluster. When they change, the pod is rolled out anew.
func ServeHostedObjects(ctx context.Context, kubeconfig, dir string) error {
	objects, err := readObjects(dir)
	if err != nil {
		return err
	}
	c, _, err := Connect(kubeconfig)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := applyAll(ctx, c, objects)
		if err != nil {
			slog.Warn("the hosted cluster does not take its objects yet", "error", err)
		}
		return err == nil, nil
	})
	if err != nil {
		return err
	}
	slog.Info("objects applied", "count", len(objects))
	return serveReady(ctx, ":8081", "/readyz")
}

func applyAll(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("applying %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

func readObjects(dir string) ([]*unstructured.Unstructured, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, path := range paths {
		u := &unstructured.Unstructured{}
		if err := readYAML(path, &u.Object); err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no objects in %s", dir)
	}
	return all, nil
}

// serveReady answers a readiness probe until ctx ends; it is called once the pod is ready.
func serveReady(ctx context.Context, address, path string) error {
	mux := http.NewServeMux()
	mux.HandleFunc(path, func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}

// WaitFor returns when the address answers 200: HyperShift's availability prober, which keeps a pod from crashing until its dependency is
// up. It accepts any certificate.
func WaitFor(ctx context.Context, address string) error {
	anyCertificate := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // nothing is said to the other side but the question
	probe := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: anyCertificate}}
	var told string
	return wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		answer := ask(ctx, probe, address)
		if answer != told {
			fmt.Fprintln(os.Stderr, answer)
			told = answer
		}
		return answer == "200 OK", nil
	})
}

func ask(ctx context.Context, probe *http.Client, address string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err.Error()
	}
	response, err := probe.Do(request)
	if err != nil {
		return err.Error()
	}
	_ = response.Body.Close()
	return response.Status
}
