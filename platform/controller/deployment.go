package controller

import (
	"context"

	"github.com/proa-dev/proa/platform"
)

// advance writes how far deployments have come. One that cannot be written holds up no other, and is tried again in the next pass.
func (t *term) advance(ctx context.Context, progress []platform.Progress) (err error) {
	for _, p := range progress {
		if failed := t.Store.AdvanceDeployment(ctx, p); failed != nil && err == nil {
			err = failed
		}
	}
	return err
}
