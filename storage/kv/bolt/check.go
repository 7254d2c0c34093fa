package bolt

import (
	"context"

	"github.com/go-faster/errors"
)

// maxFaults bounds what Check returns: the first faults lead to the others.
const maxFaults = 20

// Check looks at the structure of the file, and not at what is kept in it: that
// every page is in its place, and in only one. It returns the first faults in
// words. There must be no update meanwhile. A fault can also end the process, or
// take all of its memory, so that it is for a process of its own. Errors: those of
// View.
func (db *DB) Check(ctx context.Context) (faults []string, err error) {
	if err := db.enter(); err != nil {
		return nil, err
	}
	defer db.running.Done()
	tx, err := db.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer db.end(tx)
	for fault := range tx.Check() {
		if len(faults) < maxFaults {
			faults = append(faults, errors.Wrap(fault, "structure").Error())
		}
	}
	return faults, nil
}
