// Package guest has no code: it holds the tests of all that its packages do together in a hosted cluster, which is reached with an
// untrusted kubeconfig and serves what its administrators like. Each package imports only those before it:
//
//   - kubeconfig says what of a kubeconfig is used;
//   - pace says how often something is done;
//   - bounded reads a hosted cluster's API, and bounds what that costs: bytes, objects, memory, time;
//   - visits connects to a hosted cluster again and again, with whatever kubeconfig its Secret holds, until it is forgotten;
//   - appsingress looks at what *.apps of an Infra needs there, and keeps one Service of ours;
//   - approve approves certificates of kubelets there, for a bridge.
//
// Nothing here blocks a reconciler, which says what to do, and gets what was read last.
package guest
