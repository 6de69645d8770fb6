package bridgecli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// Every condition of the API has its place in what is printed.
func TestEachConditionHasAPlace(t *testing.T) {
	g := NewWithT(t)
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/provisioning/v1alpha1/conditions.go", nil, 0)
	g.Expect(err).NotTo(HaveOccurred())
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		if c, is := n.(*ast.ValueSpec); is && strings.HasPrefix(c.Names[0].Name, "Condition") {
			condition, err := strconv.Unquote(c.Values[0].(*ast.BasicLit).Value)
			g.Expect(err).NotTo(HaveOccurred())
			all = append(all, condition)
		}
		return true
	})
	g.Expect(order).To(ConsistOf(all))
}
