//go:build browser

package browser

const infra = `{apiVersion: v1, kind: Namespace, metadata: {name: clusters-NAME}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: NAME}}
---
{apiVersion: v1, kind: Secret, metadata: {namespace: clusters-NAME, name: token-NAME-91bf131f}, stringData: {token: CANARY}}
---
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {namespace: NAME, name: NAME}
spec:
  hostedClusterRef: {name: NAME, namespace: clusters}
  networkConfig: {cidr: 192.168.100.0/22, networkAttachmentDefinition: vlan100, networkAttachmentNamespace: default}
status:
  conditions:
  - {type: Ready, status: "True", reason: Serving, message: A worker that boots now can join., lastTransitionTime: NOW}
  endpoints:
  - {name: api, hostnames: [api.NAME.example.com], port: 6443}
  - {name: ignition, hostnames: [ignition.NAME.example.com], port: 443}
  - {name: konnectivity, hostnames: [konnectivity.NAME.example.com], port: 443}
---
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: DHCPServer
metadata: {namespace: NAME, name: NAME-dhcp}
spec:
  networkConfig: {cidr: 192.168.100.0/22, serverIP: 192.168.100.1, networkAttachmentDefinition: vlan100}
  leaseConfig: {rangeStart: 192.168.100.10, rangeEnd: 192.168.103.250}
status: {poolSize: 1009, instances: [{ip: 192.168.100.1, ready: true, node: node-1}, {ip: 192.168.100.4, ready: true, node: node-2}]}
---
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: DNSServer
metadata: {namespace: NAME, name: NAME-dns}
spec:
  hostedClusterDomain: NAME.example.com
  networkConfig: {serverIP: 192.168.100.2, secondaryNetworkCIDR: 192.168.100.0/22, networkAttachmentDefinition: vlan100}
  staticEntries: [{hostname: "*.NAME.example.com", ip: 192.168.100.3}]
status: {instances: [{ip: 192.168.100.2, ready: true, node: node-1}, {ip: 192.168.100.5, message: "nobody answers at 192.168.100.5:53", node: node-2}]}
---
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: ProxyServer
metadata: {namespace: NAME, name: NAME-proxy}
spec:
  networkConfig: {serverIP: 192.168.100.3, networkAttachmentDefinition: vlan100}
  backends:
  - {name: api, hostname: api.NAME.example.com, port: 6443, protocol: TLS, targetService: kube-apiserver, targetPort: 6443, targetNamespace: clusters-NAME}
  - {name: ignition, hostname: ignition.NAME.example.com, port: 443, protocol: TLS, targetService: ignition-server, targetPort: 443, targetNamespace: clusters-NAME}
  - {name: konnectivity, hostname: konnectivity.NAME.example.com, port: 443, protocol: TLS, targetService: konnectivity-server, targetPort: 8091, targetNamespace: clusters-NAME}
status:
  instances: [{ip: 192.168.100.3, ready: true, node: node-1}, {ip: 192.168.100.6, ready: true, node: node-2}]
  backends: [{name: api, healthy: 3, total: 3}, {name: ignition, healthy: 1, total: 1}, {name: konnectivity, healthy: 3, total: 3}]
`

const machine = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {namespace: clusters-NAME, name: WORKER, labels: {hypershift.openshift.io/nodepool-name: NAME}}
spec: {}
status: {printableStatus: Running}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {namespace: clusters-NAME, name: WORKER}
spec:
  domain: {devices: {interfaces: [{name: vlan, macAddress: "MAC"}]}}
  networks: [{name: vlan, multus: {networkName: default/vlan100}}]
status: {phase: Running, phaseTransitionTimestamps: [{phase: Running, phaseTransitionTimestamp: NOW}]}`

const lease = `
---
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: DHCPLease
metadata: {namespace: NAME, name: NAME-dhcp-IP, labels: {hostedcluster.densityops.com/infra: NAME}}
spec:
  ip: IP
  mac: "MAC"
  hostname: WORKER
  serverRef: {name: NAME-dhcp}
  state: Bound
  durableUntilTime: LATER
  expirationTime: LATER
status:
  client: "MAC"
  stages:
  - {name: NameAsked, firstTime: LATER, serverName: ignition.NAME.example.com}
  - {name: IgnitionHello, firstTime: LATER, serverName: ignition.NAME.example.com, result: Forwarded, receivedBytes: 48211}`
