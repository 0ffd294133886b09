package platform

import (
	"encoding/json"
	"time"
)

// OperationKind is what is asked of a broker, named as the job that clients follow.
type OperationKind string

// The kinds.
const (
	BrokerCreate   OperationKind = "service_broker.catalog.synchronize"
	BrokerUpdate   OperationKind = "service_broker.update"
	InstanceCreate OperationKind = "service_instance.create"
	InstanceUpdate OperationKind = "service_instance.update"
	InstanceDelete OperationKind = "service_instance.delete"
	BindingCreate  OperationKind = "service_bindings.create"
	BindingDelete  OperationKind = "service_bindings.delete"
)

// OfBroker tells whether it is about a broker itself: its catalog is read.
func (k OperationKind) OfBroker() bool { return k == BrokerCreate || k == BrokerUpdate }

// OfBinding tells whether it is about a binding.
func (k OperationKind) OfBinding() bool { return k == BindingCreate || k == BindingDelete }

// Creates tells whether the broker is asked to make something.
func (k OperationKind) Creates() bool { return k == InstanceCreate || k == BindingCreate }

// Deletes tells whether the broker is asked to delete something.
func (k OperationKind) Deletes() bool { return k == InstanceDelete || k == BindingDelete }

// Stage is what has to be done next for an operation.
type Stage string

// A broker is asked, and then asked how far it is, unless it was done at once. The credentials of a binding that took longer are fetched.
const (
	StageAsk   Stage = "ask"
	StagePoll  Stage = "poll"
	StageFetch Stage = "fetch"
)

// Operation is something that a broker is being asked. It is kept until it has ended, so that whoever finds it can go on with it.
type Operation struct {
	GUID      string
	JobGUID   string
	Kind      OperationKind
	Subject   string // guid of the broker, instance or binding
	Request   Request
	Stage     Stage
	AskedAt   time.Time // zero: never; else the broker may know of it
	Token     string    // what the broker calls it
	Polls     int
	Binding   string    // of the deletion of an instance: the binding that goes first; empty: none is left
	Deadline  time.Time // of polling; zero: not begun
	CreatedAt time.Time
}

// Failure is how a job says that an operation on a record, called as people call it, has failed.
func (k OperationKind) Failure(record, words string) JobError {
	doing := map[OperationKind]string{
		BrokerCreate: "Reading the catalog of", BrokerUpdate: "Updating", InstanceCreate: "Creating", InstanceUpdate: "Updating", InstanceDelete: "Deleting",
		BindingCreate: "Creating", BindingDelete: "Deleting",
	}[k]
	return JobError{Code: 10009, Title: "UnableToPerform", Detail: doing + " " + record + " failed. " + words}
}

// Request is what somebody asked for. It is sealed where it is kept: parameters may be secrets.
type Request struct {
	Who        Actor           // who asked: brokers are told
	Parameters json.RawMessage `json:",omitempty"` // an object, as the sender wrote it; empty: none

	// Of a change to an instance: what it will be when the broker has agreed. Nil stays.
	Name        *string      `json:",omitempty"`
	Tags        *[]string    `json:",omitempty"`
	PlanGUID    string       `json:",omitempty"`
	Maintenance *Maintenance `json:",omitempty"`

	// Of a broker: what it will be when its catalog was read.
	URL     string         `json:",omitempty"`
	Account *BrokerAccount `json:",omitempty"`
}
