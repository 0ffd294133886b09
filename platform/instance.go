package platform

import "time"

// InstanceState is how an instance is, in the words of the API.
type InstanceState string

// An instance starts until its health check passes for the first time. It is down while the cluster has not begun it.
const (
	InstanceStarting InstanceState = "STARTING"
	InstanceRunning  InstanceState = "RUNNING"
	InstanceCrashed  InstanceState = "CRASHED"
	InstanceDown     InstanceState = "DOWN"
)

// Seen is a release as a cluster has it: how many instances it was told to run, and each of them.
type Seen struct {
	Namespace string
	Name      string // of the set of instances, in the cluster
	Release   string
	Process   string
	App       string
	Type      string
	Count     int  // what the cluster was told
	Deleting  bool // the cluster was told to remove it, and has not finished
	Instances []Instance
}

// Instance is one instance as a cluster sees it.
type Instance struct {
	Index    int
	Pod      string
	PodUID   string // changes when the instance is placed anew, stays when it is started again in its place
	Run      string // tells this run of it from every other
	Node     string
	Address  string
	State    InstanceState
	Since    time.Time // when this run of it began, or when it ended
	Ready    bool      // may have requests
	Restarts int       // of this pod
	Details  string    // why it does not run, as the cluster says it
	Blocked  string    // why its container cannot be made, as an exit record would say it; none if it can, or nobody has tried
	Held     bool      // it has crashed, and is kept from being started again until it is let go
	LastExit *Exit     // in the cluster: of this pod; in the records: of this release; none so far
	Crashes  int       // how often it has crashed since it was last well for long enough; the records know
	NextTry  time.Time // when it is started again; zero unless it waits for that
}

// Exit is how a run of an instance ended. The ID is that of the run, which ends once: so it is recorded once.
type Exit struct {
	ID          string
	Time        time.Time
	Description string // who ended and how, as the exit record says it: APP/PROC/WEB/SIDECAR/CLOCK: Exited with status 1
	Stopped     bool   // pid 1 was told to stop, and does not know why: after a failed health check, by the kubelet
	Moved       bool   // the instance was taken away; the cluster places it anew by itself
}
