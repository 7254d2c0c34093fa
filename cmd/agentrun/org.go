package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"agentrun/web/gen"
)

// anyModel is the pattern that allows every model.
const anyModel = "*"

func orgCommand() *cli.Command {
	return group(&cli.Command{
		Name:  "org",
		Usage: "manage organisations",
		Commands: []*cli.Command{
			leaf(&cli.Command{Name: "create", Usage: "make an organisation", Flags: managementFlags()},
				[]string{"NAME"}, orgCreate),
			leaf(&cli.Command{Name: "list", Usage: "list the organisations", Flags: managementFlags()}, nil, orgList),
			leaf(&cli.Command{
				Name: "models", Usage: "show or change the models that an organisation's agents may use",
				Flags: managementFlags(
					&cli.StringSliceFlag{Name: "allow", Sources: env("allow"), Usage: "allow just the models that fit a glob over provider/model (repeatable)"},
					&cli.BoolFlag{Name: "none", Sources: env("none"), Usage: "allow no model"},
					&cli.BoolFlag{Name: "any", Sources: env("any"), Usage: "allow any model"},
				),
			}, []string{"ORG"}, orgModels),
		},
	})
}

func orgCreate(ctx context.Context, cmd *cli.Command, args []string) error {
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		org, err := c.CreateOrg(ctx, &gen.CreateOrgReq{Name: gen.Name(args[0])})
		if err != nil {
			return err
		}
		return show(cmd, org, orgTable(*org))
	})
}

func orgList(ctx context.Context, cmd *cli.Command, _ []string) error {
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		orgs, err := c.ListOrgs(ctx)
		if err != nil {
			return err
		}
		return show(cmd, orgs, orgTable(orgs...))
	})
}

func orgModels(ctx context.Context, cmd *cli.Command, args []string) error {
	models, change, err := modelsToSet(cmd)
	if err != nil {
		return err
	}
	return withManagement(ctx, cmd, func(c *gen.Client) (err error) {
		var org *gen.Org
		if change {
			org, err = c.SetOrgModels(ctx, &gen.SetOrgModelsReq{Models: models}, gen.SetOrgModelsParams{Org: args[0]})
		} else {
			org, err = c.GetOrg(ctx, gen.GetOrgParams{Org: args[0]})
		}
		if err != nil {
			return err
		}
		return show(cmd, org, orgTable(*org))
	})
}

// modelsToSet returns the list that the flags ask for; no change without flags.
func modelsToSet(cmd *cli.Command) (models gen.Models, change bool, err error) {
	allow, none, anyone := cmd.StringSlice("allow"), cmd.Bool("none"), cmd.Bool("any")
	switch {
	case none && anyone || (none || anyone) && len(allow) > 0:
		return nil, false, misuse("--allow, --none and --any exclude one another")
	case none:
		return gen.Models{}, true, nil
	case anyone:
		return gen.Models{anyModel}, true, nil
	default:
		return allow, len(allow) > 0, nil
	}
}

func orgTable(orgs ...gen.Org) table {
	t := table{head: []string{"ID", "NAME", "MODELS", "CREATED"}}
	for _, o := range orgs {
		models := strings.Join(o.Models, " ")
		if models == "" {
			models = "(none)"
		}
		t.rows = append(t.rows, []string{o.ID.String(), o.Name, models, at(o.CreatedAt)})
	}
	return t
}
