package web

import (
	"context"
	"time"

	"agentrun/storage"
	"agentrun/web/gen"
)

// ListOrgs implements listOrgs.
func (m *Management) ListOrgs(ctx context.Context) ([]gen.Org, error) {
	orgs, err := m.store.Orgs(ctx)
	return each(orgs, orgToAPI), err
}

// CreateOrg implements createOrg.
func (m *Management) CreateOrg(ctx context.Context, req *gen.CreateOrgReq) (*gen.Org, error) {
	return one(orgToAPI)(m.store.CreateOrg(ctx, string(req.Name)))
}

// GetOrg implements getOrg.
func (m *Management) GetOrg(ctx context.Context, params gen.GetOrgParams) (*gen.Org, error) {
	return one(orgToAPI)(m.store.FindOrg(ctx, params.Org))
}

// SetOrgModels implements setOrgModels.
func (m *Management) SetOrgModels(ctx context.Context, req *gen.SetOrgModelsReq, params gen.SetOrgModelsParams) (*gen.Org, error) {
	return one(orgToAPI)(m.store.SetModels(ctx, params.Org, req.Models))
}

// ListUsage implements listUsage.
func (m *Management) ListUsage(ctx context.Context) ([]gen.Usage, error) {
	spenders, err := m.store.Spenders(ctx)
	return each(spenders, usageToAPI), err
}

// ListDailyUsage implements listDailyUsage.
func (m *Management) ListDailyUsage(ctx context.Context, params gen.ListDailyUsageParams) ([]gen.DailyUsage, error) {
	days, err := m.store.SpentByDay(ctx, params.Org, params.Days.Or(defaultDays))
	return each(days, dailyUsageToAPI), err
}

func dailyUsageToAPI(d storage.DailySpent) gen.DailyUsage {
	return gen.DailyUsage{Day: d.Day, Spent: gen.Spent(d.Spent)}
}

// orgID returns the ID of an organisation that a request may name.
func (m *Management) orgID(ctx context.Context, name gen.OptString) (*storage.OrgID, error) {
	if !name.Set {
		return nil, nil //nolint:nilnil // Without a name there is no organisation, and no error.
	}
	org, err := m.store.FindOrg(ctx, name.Value)
	return &org.ID, err
}

func usageToAPI(s storage.Spender) gen.Usage {
	return gen.Usage{Kind: gen.UsageKind(s.Kind), ID: s.ID, Name: s.Name, Spent: gen.Spent(s.Spent)}
}

func orgToAPI(o storage.Org) gen.Org {
	models := o.Models
	if models == nil {
		models = []string{}
	}
	return gen.Org{ID: o.ID.UUID, Name: o.Name, Models: models, CreatedAt: o.CreatedAt}
}

// The values that a request has which leaves them out, as the contract says.
const (
	defaultPage = 50
	defaultDays = 30
)

func optString(s string) gen.OptString {
	if s == "" {
		return gen.OptString{}
	}
	return gen.NewOptString(s)
}

func optTime(t time.Time) gen.OptDateTime {
	if t.IsZero() {
		return gen.OptDateTime{}
	}
	return gen.NewOptDateTime(t)
}

// each converts a list; an empty one stays a list.
func each[From, To any](list []From, convert func(From) To) []To {
	out := make([]To, 0, len(list))
	for _, item := range list {
		out = append(out, convert(item))
	}
	return out
}

// one returns a function that converts the result of a call of storage.
func one[From, To any](convert func(From) To) func(From, error) (*To, error) {
	return func(from From, err error) (*To, error) {
		if err != nil {
			return nil, err
		}
		to := convert(from)
		return &to, nil
	}
}
