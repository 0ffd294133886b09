package platform

import "time"

// JobState is how far a job is.
type JobState string

// The states. Polling waits for a service broker.
const (
	JobProcessing JobState = "PROCESSING"
	JobPolling    JobState = "POLLING"
	JobComplete   JobState = "COMPLETE"
	JobFailed     JobState = "FAILED"
)

// Job is what a client follows to learn how a long change ends.
type Job struct {
	GUID      string
	Operation string // such as space.delete
	State     JobState
	Errors    []JobError // at least one when it failed
	Warnings  []string
	Owner     string // who asked for it
	CreatedAt time.Time
	UpdatedAt time.Time
}

// JobError is why it failed, as the protocol writes it.
type JobError struct {
	Code   int    `json:"code"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

// Fail ends the job. A failed job always says why.
func (j *Job) Fail(errs ...JobError) {
	if len(errs) == 0 {
		errs = []JobError{{Code: 10001, Title: "UnknownError", Detail: "The operation failed, and nothing is known of the reason. Try it again."}}
	}
	j.State, j.Errors = JobFailed, errs
}

// Go takes note of how one of its operations ended, when so many are left and some of these wait for a broker. It ends with the last.
func (j *Job) Go(left, polling int, errs []JobError, warnings []string) {
	j.Errors, j.Warnings = append(j.Errors, errs...), append(j.Warnings, warnings...)
	switch {
	case polling > 0:
		j.State = JobPolling
	case left > 0:
		j.State = JobProcessing
	case len(j.Errors) > 0:
		j.State = JobFailed
	default:
		j.State = JobComplete
	}
}

// MaySee refuses whoever has neither asked for the job nor sees everything.
func (j *Job) MaySee(w Who) error {
	if j.Owner != w.GUID && !w.Everywhere(Read) {
		return NotFound("Job")
	}
	return nil
}
