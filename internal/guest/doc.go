// Package guest has no code, only the tests of what its packages do together in a hosted cluster. We connect to that with an untrusted
// kubeconfig, and its API serves what its administrators want. Each package imports only those before it:
//
//   - kubeconfig says what we use of a kubeconfig;
//   - pace says how often something is done;
//   - bounded reads a hosted cluster's API, and limits what that costs: bytes, objects, memory, time;
//   - visits connects, and reconnects, to a hosted cluster with the kubeconfig in its Secret, until it is forgotten;
//   - appsingress watches what *.apps of an Infra needs there, and maintains one Service of ours;
//   - approve approves certificates of kubelets there for a bridge, and maintains one ClusterRoleBinding of ours.
//
// Nothing here blocks a reconciler, which says what to do and gets what was read last.
package guest
