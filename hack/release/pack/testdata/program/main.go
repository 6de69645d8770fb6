// program is small, and linked with a module.
package main

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

func main() { fmt.Println(yaml.JSONToYAML([]byte("{}"))) }
