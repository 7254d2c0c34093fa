package web

import (
	"context"
	"time"

	"agentrun/storage"
	"agentrun/web/gen"
)

// ListUsers implements listUsers.
func (m *Management) ListUsers(ctx context.Context) ([]gen.User, error) {
	users, err := m.store.Users(ctx)
	return each(users, userToAPI), err
}

// CreateUser implements createUser.
func (m *Management) CreateUser(ctx context.Context, req *gen.CreateUserReq) (*gen.User, error) {
	return one(userToAPI)(m.store.CreateUser(ctx, storage.NewUser{
		Email: string(req.Email), Password: string(req.Password),
		Role: storage.UserRole(req.Role.Or(gen.RoleMember)), Org: req.Org.Or(storage.DefaultOrg),
	}))
}

// GetUser implements getUser.
func (m *Management) GetUser(ctx context.Context, params gen.GetUserParams) (*gen.User, error) {
	return one(userToAPI)(m.store.FindUser(ctx, params.User))
}

// UpdateUser implements updateUser.
func (m *Management) UpdateUser(ctx context.Context, req *gen.UpdateUserReq, params gen.UpdateUserParams) (*gen.User, error) {
	var change storage.UserChange
	if role, ok := req.Role.Get(); ok {
		r := storage.UserRole(role)
		change.Role = &r
	}
	if org, ok := req.Org.Get(); ok {
		change.Org = &org
	}
	if disabled, ok := req.Disabled.Get(); ok {
		change.Disabled = &disabled
	}
	if password, ok := req.Password.Get(); ok {
		p := string(password)
		change.Password = &p
	}
	return one(userToAPI)(m.store.ChangeUser(ctx, params.User, change))
}

// DeleteUser implements deleteUser.
func (m *Management) DeleteUser(ctx context.Context, params gen.DeleteUserParams) (*gen.User, error) {
	return one(userToAPI)(m.store.DeleteUser(ctx, params.User))
}

// GetAccount implements getAccount.
func (m *Management) GetAccount(ctx context.Context) (*gen.Account, error) {
	actor := storage.ActorOf(ctx)
	account := &gen.Account{Kind: gen.AccountKind(actor.Kind), Name: actor.Name, Role: gen.Role(actor.Role), Scopes: scopesToAPI(actor.Scopes)}
	if actor.UserID != (storage.UserID{}) {
		account.UserID = gen.NewOptUUID(actor.UserID.UUID)
	}
	if actor.Org != (storage.OrgID{}) {
		account.OrgID = gen.NewOptUUID(actor.Org.UUID)
	}
	return account, nil
}

// ChangePassword implements changePassword.
func (m *Management) ChangePassword(ctx context.Context, req *gen.ChangePasswordReq) (*gen.User, error) {
	return one(userToAPI)(m.store.ChangePassword(ctx, string(req.Current), string(req.New)))
}

// ListTokens implements listTokens.
func (m *Management) ListTokens(ctx context.Context) ([]gen.Token, error) {
	tokens, err := m.store.Tokens(ctx)
	return each(tokens, tokenToAPI), err
}

// CreateToken implements createToken.
func (m *Management) CreateToken(ctx context.Context, req *gen.CreateTokenReq) (*gen.CreatedToken, error) {
	scopes := each(req.Scopes, func(s gen.Scope) storage.Scope { return storage.Scope(s) })
	token, secret, err := m.store.CreateToken(ctx, string(req.Name), scopes, time.Duration(req.ExpiresIn.Or(defaultTokenLife))*time.Second)
	if err != nil {
		return nil, err
	}
	return &gen.CreatedToken{Token: tokenToAPI(token), Secret: secret}, nil
}

// defaultTokenLife is what the contract says: 90 days, in seconds.
const defaultTokenLife = 90 * 24 * 60 * 60

// DeleteToken implements deleteToken.
func (m *Management) DeleteToken(ctx context.Context, params gen.DeleteTokenParams) (*gen.Token, error) {
	return one(tokenToAPI)(m.store.DeleteToken(ctx, storage.TokenID{UUID: params.Token}))
}

func userToAPI(u storage.User) gen.User {
	user := gen.User{
		ID: u.ID.UUID, Email: u.Email, Role: gen.Role(u.Role), Disabled: u.Disabled,
		CreatedAt: u.CreatedAt, SignedInAt: optTime(u.SignedInAt),
	}
	if u.Org != (storage.OrgID{}) {
		user.OrgID = gen.NewOptUUID(u.Org.UUID)
	}
	return user
}

func tokenToAPI(t storage.Token) gen.Token {
	return gen.Token{
		ID: t.ID.UUID, Name: t.Name, Prefix: t.Prefix, Scopes: scopesToAPI(t.Scopes),
		CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt, LastUsedAt: optTime(t.LastUsedAt),
	}
}

func scopesToAPI(scopes []storage.Scope) gen.Scopes {
	if scopes == nil {
		return nil
	}
	return each(scopes, func(s storage.Scope) gen.Scope { return gen.Scope(s) })
}
