package web

import (
	"context"

	"github.com/google/uuid"

	"agentrun/storage"
	"agentrun/web/gen"
)

// ListAudit implements listAudit.
func (m *Management) ListAudit(ctx context.Context, params gen.ListAuditParams) (*gen.AuditPage, error) {
	org, err := m.orgID(ctx, params.Org)
	if err != nil {
		return nil, err
	}
	entries, next, err := m.store.AuditLog(ctx, storage.AuditFilter{
		Org: org, Before: uint64(params.Before.Or(0)), Limit: params.Limit.Or(defaultPage),
	})
	if err != nil {
		return nil, err
	}
	page := &gen.AuditPage{Entries: each(entries, auditToAPI)}
	if next != 0 {
		page.Next = gen.NewOptInt64(int64(next))
	}
	return page, nil
}

func auditToAPI(a storage.Audit) gen.AuditEntry {
	return gen.AuditEntry{
		Seq: int64(a.Seq), At: a.At, Action: string(a.Action), OrgID: optUUID(a.Org.UUID), Detail: optString(a.Detail),
		Actor: gen.AuditEntryActor{
			Kind: string(a.Actor.Kind), ID: optUUID(a.Actor.ID), Name: a.Actor.Name, From: optString(a.Actor.From),
		},
		Subject: gen.AuditEntrySubject{Kind: a.Subject.Kind, ID: optUUID(a.Subject.ID), Name: a.Subject.Name},
	}
}

func optUUID(id uuid.UUID) gen.OptUUID {
	if id == uuid.Nil {
		return gen.OptUUID{}
	}
	return gen.NewOptUUID(id)
}
