package cmd

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

func TestNothingIsServedWithoutACluster(t *testing.T) {
	for says, args := range map[string][]string{
		"unknown flag: --nonsense":  {"--nonsense"},
		"none is in the kubeconfig": {},
	} {
		t.Run(says, func(t *testing.T) { cannotBegin(t, says, append([]string{"ui"}, args...)) })
	}
}

const served = `
mkfifo printed
oooi ui >printed 2>err & ui=$!
trap 'kill $ui; wait $ui' EXIT
read -r U <printed
port=$(cut -d: -f3 <<<"$U" | cut -d/ -f1)
ask() { curl -s -o body -w '%{http_code}\n' "$@"; }
echo "page $(ask "$U"infras/clusters/c1)"; grep -o '<title>.*</title>' body
echo "overview $(ask "$U")"; grep -o 'href="./infras/clusters/c1"' body
echo "script $(ask "$U"live.js)"
echo "none $(ask "$U"infras/clusters/c2)"
echo "without $(ask http://127.0.0.1:$port/infras/clusters/c1) $(ask http://127.0.0.1:$port/) $(ask http://127.0.0.1:$port/live.js) $(ask "${U%??}x/")"
echo "rebound $(ask -H 'Host: evil.example:80' "$U")"
echo "written $(ask -X POST "$U") $(ask -X DELETE "$U"infras/clusters/c1)"
curl -sD- -o body "$U" | grep -i content-security
mkfifo stream
curl -sN "$U"infras/clusters/c1/events >stream & curl=$!
exec 3<stream
while read -r line <&3; do case $line in data:*) break ;; esac; done   # it has all of the page
ready True Serving
while read -r line <&3; do case $line in data:*"Serving for a test"*) echo changed; break ;; esac; done
kill $curl
kubectl create serviceaccount viewer -n clusters
kubectl create role viewer -n clusters --verb=get,list --resource=infras.hostedcluster.densityops.com
kubectl create rolebinding viewer -n clusters --role=viewer --serviceaccount=clusters:viewer
oooi manager --image=oooi:1 --envoy-image=envoy:1 --health-probe-bind-address=0 --ui-bind-address=127.0.0.1:18444 >log 2>&1 & manager=$!
trap 'kill $ui $manager; wait $ui $manager' EXIT
M=https://127.0.0.1:18444
asked() { ask -k --retry 60 --retry-connrefused --retry-delay 1 "$@"; }
echo "manager $(asked $M/)$(asked $M/metrics) $(asked -H "Authorization: Bearer $(kubectl create token viewer -n clusters)" $M/infras/clusters/c1)"; grep -o '<title>.*</title>' body
ss -Hltn "sport = :$port" | awk '{print $4}' | sed "s/:$port//"
`

// A browser on this machine that has the address sees the Infra, and nobody else anything.
func TestPagesAreServedToWhoHasTheAddress(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	s := newShell(t)
	s.Expect(s.runs(drawnInfra + served)).To(And(
		ContainSubstring("page 200\n<title>Infra clusters/c1 · oooi</title>\n"),
		ContainSubstring("overview 200\nhref=\"./infras/clusters/c1\"\nscript 200\nnone 404\nwithout 404 404 404 404\nrebound 404\nwritten 405 405\n"),
		ContainSubstring("default-src 'none'"),
		ContainSubstring("manager 401404 200\n<title>Infra clusters/c1 · oooi</title>\n"),
		MatchRegexp(`(?s)changed\n.*127.0.0.1\n$`)))
}
