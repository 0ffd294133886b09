package platform

import (
	"time"

	"github.com/proa-dev/proa/kit/fault"
)

// A Deployment puts new instances of an app in the place of those that run, while they run. There is at most one under way for an app.
type Deployment struct {
	GUID            string
	AppGUID         string
	Strategy        Strategy
	Value           DeploymentValue
	Reason          DeploymentReason
	MaxInFlight     int
	Steps           []int // of a canary: the percentages of new instances at which it pauses; none: one new instance
	Step            int   // of a canary: which one, from 1; beyond the last the rest follows
	Scale           ProcessScale
	Droplet         string
	PreviousDroplet string
	RevisionGUID    string
	RevisionVersion int
	Version         int // of the new releases
	PreviousVersion int
	Ready           int    // new instances that were ready when somebody last looked
	Error           string // of one under way: why the new instance that failed last is not ready; empty if none has
	Metadata        Metadata
	ChangedAt       time.Time // when the status last changed
	HealthyAt       time.Time // when a new instance last became ready
	CreatedAt       time.Time
	UpdatedAt       time.Time
}

// Strategy is how instances are replaced.
type Strategy string

// The strategies: without a pause, or with pauses in which a person judges the new instances.
const (
	Rolling Strategy = "rolling"
	Canary  Strategy = "canary"
)

// DeploymentValue tells whether a deployment is under way.
type DeploymentValue string

// The values.
const (
	DeploymentActive    DeploymentValue = "ACTIVE"
	DeploymentFinalized DeploymentValue = "FINALIZED"
)

// DeploymentReason is what an active deployment does, or how a finalized one ended.
type DeploymentReason string

// The reasons: of active deployments, then of finalized ones.
const (
	Deploying  DeploymentReason = "DEPLOYING"
	Paused     DeploymentReason = "PAUSED"
	Canceling  DeploymentReason = "CANCELING"
	Deployed   DeploymentReason = "DEPLOYED"
	Canceled   DeploymentReason = "CANCELED"
	Superseded DeploymentReason = "SUPERSEDED"
)

const maxSteps = 100

// The words are Cloud Foundry's.
var (
	ErrNoDroplet     = fault.Unprocessable("Invalid droplet. Please specify a droplet in the request or set a current droplet for the app.")
	ErrTwoSources    = fault.Unprocessable("Cannot set both fields 'droplet' and 'revision'")
	ErrSameRevision  = fault.Unprocessable("Unable to rollback. The code and configuration you are rolling back to is the same as the deployed revision.")
	ErrNotDeployable = fault.Unprocessable("Unable to deploy this revision, the droplet for this revision no longer exists.")
	ErrNoRevision    = fault.Unprocessable("The revision does not exist")
)

// Begin makes a deployment of what was asked for: it is under way, or says what is wrong.
func (d *Deployment) Begin() error {
	if d.Strategy == "" {
		d.Strategy = Rolling
	}
	if d.MaxInFlight == 0 {
		d.MaxInFlight = 1
	}
	switch {
	case d.Strategy != Rolling && d.Strategy != Canary:
		return fault.Unprocessable("Strategy '%s' is not a supported deployment strategy", clipText(string(d.Strategy)))
	case d.MaxInFlight < 1 || d.MaxInFlight > maxInstances:
		return fault.Unprocessable("Max in flight must be an integer greater than 0, and at most %d", maxInstances)
	case len(d.Steps) > 0 && d.Strategy != Canary:
		return fault.Unprocessable("Canary options are for the strategy 'canary' only.")
	case len(d.Steps) > maxSteps:
		return fault.Unprocessable("A canary may have at most %d steps.", maxSteps)
	}
	last := 0
	for _, weight := range d.Steps {
		if weight <= last || weight > 100 {
			return fault.Unprocessable("Canary steps' instance_weight must be integers from 1 to 100, each greater than the one before.")
		}
		last = weight
	}
	if err := d.Scale.Check(); err != nil {
		return err
	}
	d.Value, d.Reason = DeploymentActive, Deploying
	if d.Strategy == Canary {
		d.Step = 1
	}
	return d.Metadata.Check()
}

// TotalSteps is how often a canary pauses.
func (d *Deployment) TotalSteps() int { return max(len(d.Steps), 1) }

// Target is how many of n instances shall be new for now, and whether a person is to judge them.
func (d *Deployment) Target(n int) (target int, canary bool) {
	switch {
	case d.Strategy != Canary || d.Reason == Canceling || d.Step > d.TotalSteps():
		return n, false
	case len(d.Steps) == 0:
		return min(n, 1), true
	}
	return min(n, (n*d.Steps[d.Step-1]+99)/100), true
}

// Reach takes that as many new instances are ready as there shall be for now.
func (d *Deployment) Reach() {
	_, canary := d.Target(0)
	switch {
	case d.Value != DeploymentActive:
	case d.Reason == Canceling:
		d.End(Canceled)
	case canary:
		d.Reason = Paused
	default:
		d.End(Deployed)
	}
}

// End finalizes a deployment that is under way.
func (d *Deployment) End(reason DeploymentReason) { d.Value, d.Reason = DeploymentFinalized, reason }

// Continue goes on after a pause.
func (d *Deployment) Continue() error {
	if d.Value != DeploymentActive || d.Reason != Paused {
		return fault.Unprocessable("Cannot continue a deployment with status: %s and reason: %s", d.Value, d.Reason)
	}
	d.Reason = Deploying
	d.Step++
	return nil
}

// Cancel goes back to what ran before. A second time it changes nothing.
func (d *Deployment) Cancel() error {
	if d.Value != DeploymentActive {
		return fault.Unprocessable("Cannot cancel a %s deployment", d.Reason)
	}
	d.Reason = Canceling
	return nil
}
