package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"agentrun/web/gen"
)

func keyCommand() *cli.Command {
	on := []string{"KEY_ID"}
	return group(&cli.Command{
		Name:  "key",
		Usage: "manage the API keys of agents",
		Commands: []*cli.Command{
			leaf(&cli.Command{
				Name: "create", Usage: "make a key; only now it is shown",
				Flags: managementFlags(
					&cli.StringFlag{Name: "name", Sources: env("name"), Usage: "the key's name"},
					&cli.DurationFlag{Name: "expires", Sources: env("expires"), Usage: "how long the key lives, such as 720h (default: for ever)"},
				),
			}, []string{"AGENT"}, keyCreate),
			leaf(&cli.Command{Name: "list", Usage: "list the keys of an agent", Flags: managementFlags()},
				[]string{"AGENT"}, keyList),
			leaf(&cli.Command{
				Name: "rotate", Usage: "make a key in the place of another one, which ends soon; only now it is shown",
				Flags: managementFlags(&cli.DurationFlag{
					Name: "overlap", Value: 24 * time.Hour, Sources: env("overlap"), Validator: atLeast(time.Duration(0)),
					Usage: "how long the old key is still accepted",
				}),
			}, on, onKeyID(keyRotate)),
			leaf(&cli.Command{
				Name: "requests", Usage: "list what a key asked for, newest first",
				Flags: managementFlags(&cli.IntFlag{
					Name: "limit", Value: 50, Sources: env("limit"), Usage: "the most requests to list", Validator: atLeast(1),
				}),
			}, on, onKeyID(keyRequests)),
			leaf(&cli.Command{Name: "disable", Usage: "refuse a key until it is enabled", Flags: managementFlags()}, on,
				onKey(func(ctx context.Context, c *gen.Client, id uuid.UUID) (*gen.Key, error) {
					return c.DisableKey(ctx, gen.DisableKeyParams{Key: id})
				})),
			leaf(&cli.Command{Name: "enable", Usage: "accept a key again", Flags: managementFlags()}, on,
				onKey(func(ctx context.Context, c *gen.Client, id uuid.UUID) (*gen.Key, error) {
					return c.EnableKey(ctx, gen.EnableKeyParams{Key: id})
				})),
			leaf(&cli.Command{Name: "delete", Usage: "remove a key for good", Flags: managementFlags()}, on,
				onKey(func(ctx context.Context, c *gen.Client, id uuid.UUID) (*gen.Key, error) {
					return c.DeleteKey(ctx, gen.DeleteKeyParams{Key: id})
				})),
		},
	})
}

// onKeyID makes the action of a command that names one key.
func onKeyID(do func(ctx context.Context, cmd *cli.Command, key uuid.UUID) error) action {
	return func(ctx context.Context, cmd *cli.Command, args []string) error {
		id, err := uuid.Parse(args[0])
		if err != nil {
			return errors.Errorf("%q is not the ID of a key", args[0])
		}
		return do(ctx, cmd, id)
	}
}

// onKey makes the action of a command that names one key and shows it.
func onKey(do func(context.Context, *gen.Client, uuid.UUID) (*gen.Key, error)) action {
	return onKeyID(func(ctx context.Context, cmd *cli.Command, id uuid.UUID) error {
		return withManagement(ctx, cmd, func(c *gen.Client) error {
			key, err := do(ctx, c, id)
			if err != nil {
				return err
			}
			return show(cmd, key, keyTable(*key))
		})
	})
}

func keyCreate(ctx context.Context, cmd *cli.Command, args []string) error {
	req := &gen.CreateKeyReq{}
	if name := cmd.String("name"); name != "" {
		req.Name = gen.NewOptName(gen.Name(name))
	}
	if cmd.IsSet("expires") {
		life := cmd.Duration("expires")
		if life < time.Second {
			return misuse(fmt.Sprintf("--expires %s: want a second or more", life))
		}
		req.ExpiresIn = gen.NewOptInt(int(life / time.Second))
	}
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		key, err := c.CreateKey(ctx, req, gen.CreateKeyParams{Agent: args[0]})
		if err != nil {
			return err
		}
		return show(cmd, key, newKeyTable(key))
	})
}

func newKeyTable(key *gen.CreatedKey) table {
	return table{
		head: []string{"ID", "NAME", "KEY (shown only now)"},
		rows: [][]string{{key.ID.String(), key.Name, key.Key}},
	}
}

func keyRotate(ctx context.Context, cmd *cli.Command, id uuid.UUID) error {
	req := &gen.RotateKeyReq{Overlap: gen.NewOptInt(int(cmd.Duration("overlap") / time.Second))}
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		key, err := c.RotateKey(ctx, req, gen.RotateKeyParams{Key: id})
		if err != nil {
			return err
		}
		return show(cmd, key, newKeyTable(key))
	})
}

func keyRequests(ctx context.Context, cmd *cli.Command, id uuid.UUID) error {
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		requests, err := requestsOf(ctx, c, id, cmd.Int("limit"))
		if err != nil {
			return err
		}
		t := table{head: []string{"AT", "STATUS", "RUN", "NAME"}}
		for _, r := range requests {
			run := unknown
			if id, ok := r.Run.Get(); ok {
				run = id.String()
			}
			t.rows = append(t.rows, []string{at(r.At), strconv.Itoa(r.Status), run, r.Name.Or("")})
		}
		return show(cmd, requests, t)
	})
}

// requestsOf returns the newest requests of a key, limit at most.
func requestsOf(ctx context.Context, c *gen.Client, id uuid.UUID, limit int) ([]gen.KeyRequest, error) {
	all := []gen.KeyRequest{}
	params := gen.ListKeyRequestsParams{Key: id}
	for {
		params.Limit = gen.NewOptInt(min(limit-len(all), maxPage))
		page, err := c.ListKeyRequests(ctx, params)
		if err != nil {
			return nil, err
		}
		if all = append(all, page.Requests...); len(all) >= limit || !page.Next.Set {
			return all, nil
		}
		params.Before = page.Next
	}
}

func keyList(ctx context.Context, cmd *cli.Command, args []string) error {
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		keys, err := c.ListKeys(ctx, gen.ListKeysParams{Agent: args[0]})
		if err != nil {
			return err
		}
		return show(cmd, keys, keyTable(keys...))
	})
}

func keyTable(keys ...gen.Key) table {
	t := table{head: []string{"ID", "NAME", "PREFIX", "DISABLED", "EXPIRES", "CREATED"}}
	for _, k := range keys {
		expires := "never"
		if end, ok := k.ExpiresAt.Get(); ok {
			expires = at(end)
		}
		t.rows = append(t.rows, []string{
			k.ID.String(), k.Name, k.Prefix + "…", yesNo(k.Disabled), expires, at(k.CreatedAt),
		})
	}
	return t
}
