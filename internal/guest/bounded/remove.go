package bounded

import (
	"context"
	"encoding/json"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Remove deletes the very object that was seen. If it is gone, or another took its place, a watch shows that soon.
func (a *API) Remove(ctx context.Context, path string, uid types.UID) error {
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: metav1.NewUIDPreconditions(string(uid)),
	})
	if err != nil {
		return err
	}
	_, err = a.Do(ctx, Request{Verb: http.MethodDelete, Path: path, Accept: AsJSON, Content: AsJSON, Body: body})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
