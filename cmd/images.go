package cmd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cldmnky/oooi/internal/images"
	"github.com/cldmnky/oooi/internal/plan/input"
)

func newImagesCommand() *cobra.Command {
	var settings input.Settings
	var mirror, output string
	cmd := &cobra.Command{
		Use:   "images",
		Short: "List the images that an installation pulls, and what is needed to mirror them",
		Long: "Lists the operator's image, which is also that of the DHCP and DNS servers and of the proxy's configuration, and Envoy's.\n" +
			"Asks neither a cluster nor a registry. docs/AIRGAP.md has the steps around it.\n\n" +
			"  -o list       references, one per line; the default without --mirror-to\n" +
			"  -o mapping    SOURCE=MIRROR, for oc image mirror -f; the default with --mirror-to\n" +
			"  -o imageset   an ImageSetConfiguration, for oc mirror --v2\n" +
			"  -o mirrorset  an ImageDigestMirrorSet for images by digest, and an ImageTagMirrorSet for those by tag\n\n" +
			"Exit code: 0 if the list is printed, 2 if flags are invalid.",
		Example: "  oooi images --mirror-to registry.example.com/oooi\n  oooi images --mirror-to registry.example.com/oooi -o mirrorset",
		Args:    noArguments,
	}
	bindImages(cmd, &settings)
	cmd.Flags().StringVar(&mirror, "mirror-to", "", "HOST/PATH below which your registry has the images")
	cmd.Flags().StringVarP(&output, "output", "o", "", "list, mapping, imageset or mirrorset")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if output == "" && mirror == "" {
			output = "list"
		} else if output == "" {
			output = "mapping"
		}
		format, known := images.Formats[output]
		switch {
		case !known:
			return asUnusable(fmt.Errorf("--output %s: write one of %s", output, strings.Join(slices.Sorted(maps.Keys(images.Formats)), ", ")))
		case (format.NeedsMirror || cmd.Flags().Changed("mirror-to")) && mirror == "":
			return asUnusable(fmt.Errorf("--output %s: say where the images are mirrored, with --mirror-to HOST/PATH", output))
		}
		settings = withReleasedImages(settings)
		list, err := images.Of(mirror, settings.Image, settings.EnvoyImage)
		if err != nil {
			return asUnusable(err)
		}
		_, err = fmt.Fprint(cmd.OutOrStdout(), list.Write(output))
		return err
	}
	return cmd
}
