{{/* The chart has no manifests of its own: it reads those of config/, in the release's namespace (docs/adr/0007). */}}

{{- define "oooi.config" -}}
{{- $root := index . 0 -}}
{{- $path := printf "config/%s" (index . 1) -}}
{{- $root.Files.Get $path | required (printf "%s is not in the chart" $path) | replace "oooi-system" $root.Release.Namespace -}}
{{- end }}

{{/* The API groups that are switched on, as a YAML list. */}}
{{- define "oooi.groups" -}}
{{- $groups := list -}}
{{- if .Values.vlanServices.enabled }}{{ $groups = append $groups "hostedcluster.densityops.com" }}{{ end -}}
{{- if .Values.bridge.enabled }}{{ $groups = append $groups "provisioning.dpu.hcp.io" }}{{ end -}}
{{- if not $groups }}{{ fail "vlanServices.enabled and bridge.enabled are both false: there would be nothing to do. Switch one on." }}{{ end -}}
{{- toYaml $groups -}}
{{- end }}

{{- define "oooi.image" -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}
{{- else }}{{ .repository }}:{{ .tag | required (printf "The image %s has neither tag nor digest. Set one." .repository) }}{{ end -}}
{{- end }}

{{- define "oooi.envoyImage" -}}
{{- $envoy := .Values.envoyImage -}}
{{- if not $envoy.repository -}}
{{- if and .Values.vlanServices.enabled (ne .Values.image.repository "oooi") }}{{ fail (printf "image.repository is %s, but Envoy would still be the public docker.io/envoyproxy/envoy. Set envoyImage.repository: to your mirror of it, or to docker.io/envoyproxy/envoy if nodes may pull that." .Values.image.repository) }}{{ end -}}
{{- $envoy = merge (dict "repository" "docker.io/envoyproxy/envoy") $envoy -}}
{{- end -}}
{{- include "oooi.image" $envoy -}}
{{- end }}
