package storage

import (
	"context"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// ModelCalled is the data of EventModelCalled.
type ModelCalled struct {
	// Model is the model that was asked, as provider/model.
	Model string `json:"model"`
	Spent Spent  `json:"spent"`
	// Seconds is how long the answer took.
	Seconds float64 `json:"seconds"`
	// Status is the provider's HTTP status, 0 when there was no answer.
	Status int `json:"status"`
	// Estimated is true when the provider did not count what was spent.
	Estimated bool `json:"estimated,omitempty"`
}

// ModelAllowed says whether an organisation allows a model, provider/model.
// Errors: *ModelError; ErrOrgNotFound.
func (s *Store) ModelAllowed(ctx context.Context, org OrgID, model string) error {
	return s.db.View(ctx, func(r kv.Reader) error {
		rec, err := get[orgRecord](r, spaceOrgs, org.UUID[:])
		switch {
		case err != nil:
			return err
		case rec == nil:
			return errors.Wrapf(ErrOrgNotFound, "organisation %s", org)
		case !rec.allows(model):
			return &ModelError{Model: model, Allowed: rec.Models}
		}
		return nil
	})
}
