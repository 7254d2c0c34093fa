package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"agentrun/web/gen"
)

func tokenCommand() *cli.Command {
	return group(&cli.Command{
		Name:  "token",
		Usage: "manage one's own personal access tokens, over HTTP",
		Commands: []*cli.Command{
			leaf(&cli.Command{
				Name: "create", Usage: "make a token of the user of --token; only now it is shown",
				Flags: managementFlags(
					&cli.StringSliceFlag{
						Name: "scope", Sources: env("scope"), Validator: validScopes,
						Usage: "what it may do: read, runs, agents, keys or admin (repeatable; default: read, which the others include)",
					},
					&cli.DurationFlag{Name: "expires", Sources: env("expires"), Usage: "how long it lives, such as 720h, a year at most (default: 90 days)"},
				),
			}, []string{"NAME"}, tokenCreate),
			leaf(&cli.Command{Name: "list", Usage: "list the tokens of the user of --token", Flags: managementFlags()}, nil, tokenList),
			leaf(&cli.Command{Name: "delete", Usage: "remove a token for good", Flags: managementFlags()},
				[]string{"TOKEN_ID"}, tokenDelete),
		},
	})
}

// validScopes refuses what is no scope.
func validScopes(scopes []string) error {
	for _, scope := range separated(scopes) {
		if gen.Scope(scope).Validate() != nil {
			return misuse(fmt.Sprintf("%q: want read, runs, agents, keys or admin", scope))
		}
	}
	return nil
}

// withTokens is withManagement for what users have and the operator on the
// machine has not.
func withTokens(ctx context.Context, cmd *cli.Command, do func(*gen.Client) error) error {
	server, err := remoteOf(cmd)
	if err == nil && server == nil {
		err = misuse("tokens belong to users: want --server, and a token of the user. The first one is made in the application, under Account")
	}
	if err != nil {
		return err
	}
	return withManagement(ctx, cmd, do)
}

func tokenCreate(ctx context.Context, cmd *cli.Command, args []string) error {
	req := &gen.CreateTokenReq{Name: gen.Name(args[0]), Scopes: gen.Scopes{gen.ScopeRead}}
	if scopes := separated(cmd.StringSlice("scope")); len(scopes) > 0 {
		req.Scopes = nil
		for _, scope := range scopes {
			req.Scopes = append(req.Scopes, gen.Scope(scope))
		}
	}
	if cmd.IsSet("expires") {
		life := cmd.Duration("expires")
		if life < time.Second {
			return misuse(fmt.Sprintf("--expires %s: want a second or more", life))
		}
		req.ExpiresIn = gen.NewOptInt(int(life / time.Second))
	}
	return withTokens(ctx, cmd, func(c *gen.Client) error {
		made, err := c.CreateToken(ctx, req)
		if err != nil {
			return err
		}
		return show(cmd, made, table{
			head: []string{"ID", "NAME", "EXPIRES", "TOKEN (shown only now)"},
			rows: [][]string{{made.Token.ID.String(), made.Token.Name, at(made.Token.ExpiresAt), made.Secret}},
		})
	})
}

func tokenList(ctx context.Context, cmd *cli.Command, _ []string) error {
	return withTokens(ctx, cmd, func(c *gen.Client) error {
		tokens, err := c.ListTokens(ctx)
		if err != nil {
			return err
		}
		return show(cmd, tokens, tokenTable(tokens...))
	})
}

func tokenDelete(ctx context.Context, cmd *cli.Command, args []string) error {
	id, err := uuid.Parse(args[0])
	if err != nil {
		return errors.Errorf("%q is not the ID of a token", args[0])
	}
	return withTokens(ctx, cmd, func(c *gen.Client) error {
		token, err := c.DeleteToken(ctx, gen.DeleteTokenParams{Token: id})
		if err != nil {
			return err
		}
		return show(cmd, token, tokenTable(*token))
	})
}

func tokenTable(tokens ...gen.Token) table {
	t := table{head: []string{"ID", "NAME", "PREFIX", "SCOPES", "EXPIRES", "LAST USED"}}
	for _, k := range tokens {
		scopes, used := make([]string, 0, len(k.Scopes)), "never"
		for _, scope := range k.Scopes {
			scopes = append(scopes, string(scope))
		}
		if last, ok := k.LastUsedAt.Get(); ok {
			used = at(last)
		}
		t.rows = append(t.rows, []string{k.ID.String(), k.Name, k.Prefix + "…", strings.Join(scopes, " "), at(k.ExpiresAt), used})
	}
	return t
}
