package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"agentrun/web/gen"
)

func userCommand() *cli.Command {
	on := []string{"EMAIL"}
	org := &cli.StringFlag{Name: "org", Sources: env("org"), Usage: "ID or name of a member's organisation"}
	role := &cli.StringFlag{
		Name: "role", Sources: env("role"), Usage: "operator, who may do everything, or member, of one organisation", Validator: validRole,
	}
	return group(&cli.Command{
		Name:  "user",
		Usage: "manage the people who can sign in",
		Commands: []*cli.Command{
			leaf(&cli.Command{
				Name: "create", Usage: "make a user; the password is a line of standard input, or typed",
				Flags: managementFlags(org, role),
			}, on, userCreate),
			leaf(&cli.Command{Name: "list", Usage: "list the users", Flags: managementFlags()}, nil, userList),
			leaf(&cli.Command{Name: "show", Usage: "show a user", Flags: managementFlags()}, on,
				onUser(func(ctx context.Context, c *gen.Client, user string) (*gen.User, error) {
					return c.GetUser(ctx, gen.GetUserParams{User: user})
				})),
			leaf(&cli.Command{
				Name: "change", Usage: "change a user",
				Flags: managementFlags(org, role,
					&cli.BoolFlag{Name: "disable", Sources: env("disable"), Usage: "refuse the user and the user's tokens"},
					&cli.BoolFlag{Name: "enable", Sources: env("enable"), Usage: "accept the user again"},
					// A variable of this name would be taken for the password itself.
					&cli.BoolFlag{Name: "password", Usage: "set a new password: a line of standard input, or typed"},
				),
			}, on, userChange),
			leaf(&cli.Command{Name: "delete", Usage: "remove a user with all sessions and tokens", Flags: managementFlags()}, on,
				onUser(func(ctx context.Context, c *gen.Client, user string) (*gen.User, error) {
					return c.DeleteUser(ctx, gen.DeleteUserParams{User: user})
				})),
		},
	})
}

// validRole refuses what is no role.
func validRole(text string) error {
	if gen.Role(text).Validate() != nil {
		return misuse("want operator or member")
	}
	return nil
}

// onUser makes the action of a command that names one user and shows it.
func onUser(do func(context.Context, *gen.Client, string) (*gen.User, error)) action {
	return func(ctx context.Context, cmd *cli.Command, args []string) error {
		return withManagement(ctx, cmd, func(c *gen.Client) error {
			user, err := do(ctx, c, args[0])
			if err != nil {
				return err
			}
			return show(cmd, user, userTable(*user))
		})
	}
}

func userCreate(ctx context.Context, cmd *cli.Command, args []string) error {
	password, err := passwordFor(cmd, args[0])
	if err != nil {
		return err
	}
	req := &gen.CreateUserReq{Email: gen.Email(args[0]), Password: password, Role: roleOf(cmd), Org: orgOf(cmd)}
	create := onUser(func(ctx context.Context, c *gen.Client, _ string) (*gen.User, error) { return c.CreateUser(ctx, req) })
	return create(ctx, cmd, args)
}

func userList(ctx context.Context, cmd *cli.Command, _ []string) error {
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		users, err := c.ListUsers(ctx)
		if err != nil {
			return err
		}
		return show(cmd, users, userTable(users...))
	})
}

func userChange(ctx context.Context, cmd *cli.Command, args []string) error {
	req := &gen.UpdateUserReq{Role: roleOf(cmd), Org: orgOf(cmd)}
	disable, enable, password := cmd.Bool("disable"), cmd.Bool("enable"), cmd.Bool("password")
	switch {
	case disable && enable:
		return misuse("--disable and --enable exclude one another")
	case disable || enable:
		req.Disabled = gen.NewOptBool(disable)
	case !password && !req.Role.Set && !req.Org.Set:
		return misuse(fmt.Sprintf("nothing to change of %s: want --role, --org, --disable, --enable or --password", args[0]))
	}
	if password {
		text, err := passwordFor(cmd, args[0])
		if err != nil {
			return err
		}
		req.Password = gen.NewOptPassword(text)
	}
	change := onUser(func(ctx context.Context, c *gen.Client, user string) (*gen.User, error) {
		return c.UpdateUser(ctx, req, gen.UpdateUserParams{User: user})
	})
	return change(ctx, cmd, args)
}

// passwordFor reads a password, once it is known that there is somebody to send
// it to.
func passwordFor(cmd *cli.Command, email string) (gen.Password, error) {
	if _, err := remoteOf(cmd); err != nil {
		return "", err
	}
	password, err := readPassword(email)
	return gen.Password(password), err
}

func roleOf(cmd *cli.Command) gen.OptRole {
	if role := cmd.String("role"); role != "" {
		return gen.NewOptRole(gen.Role(role))
	}
	return gen.OptRole{}
}

// orgOf is the organisation that --org names, if it names one.
func orgOf(cmd *cli.Command) gen.OptString {
	if org := cmd.String("org"); org != "" {
		return gen.NewOptString(org)
	}
	return gen.OptString{}
}

func userTable(users ...gen.User) table {
	t := table{head: []string{"ID", "EMAIL", "ROLE", "ORGANISATION", "DISABLED", "SIGNED IN", "CREATED"}}
	for _, u := range users {
		org, signedIn := unknown, "never"
		if id, ok := u.OrgID.Get(); ok {
			org = id.String()
		}
		if last, ok := u.SignedInAt.Get(); ok {
			signedIn = at(last)
		}
		t.rows = append(t.rows, []string{
			u.ID.String(), u.Email, string(u.Role), org, yesNo(u.Disabled), signedIn, at(u.CreatedAt),
		})
	}
	return t
}
