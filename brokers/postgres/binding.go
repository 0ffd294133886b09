package postgres

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"

	"code.cloudfoundry.org/brokerapi/v13/domain"
	"code.cloudfoundry.org/brokerapi/v13/domain/apiresponses"
	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/kit/fault"
)

// Credentials are what an app gets.
type Credentials struct {
	Host     string `json:"host"`
	Port     int    `json:"port"`
	Database string `json:"database"`
	Username string `json:"username"`
	Password string `json:"password"`
	URI      string `json:"uri"`
	JDBC     string `json:"jdbcUrl"`
}

func (b *Broker) credentials(x binding) Credentials {
	c := Credentials{Host: b.Host, Port: b.Port, Database: databaseName(x.Instance), Username: loginName(x.Instance, x.ID), Password: x.Password}
	at := net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
	mode := url.Values{"sslmode": {b.SSLMode}}
	c.URI = (&url.URL{Scheme: "postgres", User: url.UserPassword(c.Username, c.Password), Host: at, Path: "/" + c.Database, RawQuery: mode.Encode()}).String()
	mode.Set("user", c.Username)
	mode.Set("password", c.Password)
	c.JDBC = "jdbc:postgresql://" + at + "/" + c.Database + "?" + mode.Encode()
	return c
}

// Bind makes a login. It takes a moment only, so it is done at once.
func (b *Broker) Bind(ctx context.Context, id, bindingID string, d domain.BindDetails, _ bool) (domain.Binding, error) {
	x, made, err := b.bind(ctx, id, bindingID, d)
	return domain.Binding{AlreadyExists: !made, Credentials: b.credentials(x)}, b.answer(ctx, err)
}

func (b *Broker) bind(ctx context.Context, id, bindingID string, d domain.BindDetails) (x binding, made bool, err error) {
	app := d.AppGUID
	if d.BindResource != nil && d.BindResource.AppGuid != "" {
		app = d.BindResource.AppGuid
	}
	if err := errors.Join(checkIDs(id, bindingID), b.check(d.ServiceID, d.PlanID, nil, true), noParameters(d.RawParameters), short(app)); err != nil {
		return x, false, err
	}
	if err := b.whole(ctx, id); err != nil { // before waiting for the lock
		return x, false, err
	}
	err = b.Server.locked(ctx, id, lockWait, func(conn *pgx.Conn) error {
		if err := b.whole(ctx, id); err != nil {
			return err
		}
		if x, err = b.State.addBinding(ctx, id, bindingID, app); err != nil {
			return err
		}
		if x.App != app {
			return fault.Conflict("There is a binding with this id for another app. Choose another id.")
		}
		if x.Ready {
			return nil
		}
		made = true
		if err := b.State.forget(ctx, loginName(id, bindingID)); err != nil {
			return err
		}
		if err := b.step("bind: login", func() error { return makeLogin(ctx, conn, loginName(id, bindingID), ownerName(id), x.Password) }); err != nil {
			return err
		}
		return b.step("bind: ready", func() error { return b.State.setReady(ctx, id, bindingID, true) })
	})
	if err == nil && made {
		b.Log.InfoContext(ctx, "bound", "instance", id, "binding", bindingID)
	}
	return x, made, err
}

// whole refuses an instance that cannot be bound: one that was not made, or has something under way.
func (b *Broker) whole(ctx context.Context, id string) error {
	i, err := b.State.instance(ctx, id)
	switch {
	case err != nil:
		return err
	case i.busy():
		return concurrent()
	case !i.usable():
		return halfDeleted()
	}
	return nil
}

// Unbind ends the sessions of a login and drops it. What it made stays, and is the owner role's.
func (b *Broker) Unbind(ctx context.Context, id, bindingID string, _ domain.UnbindDetails, _ bool) (domain.UnbindSpec, error) {
	return domain.UnbindSpec{}, b.answer(ctx, b.unbind(ctx, id, bindingID))
}

func (b *Broker) unbind(ctx context.Context, id, bindingID string) error {
	if err := checkIDs(id, bindingID); err != nil {
		return err
	}
	if _, err := b.idle(ctx, id, bindingID); err != nil { // before waiting for the lock
		return err
	}
	err := b.Server.locked(ctx, id, lockWait, func(conn *pgx.Conn) error {
		i, err := b.idle(ctx, id, bindingID)
		if err != nil {
			return err
		}
		return b.dropBinding(ctx, conn, i, bindingID)
	})
	if err == nil {
		b.Log.InfoContext(ctx, "unbound", "instance", id, "binding", bindingID)
	}
	return err
}

// idle finds the instance of a binding, with nothing under way.
func (b *Broker) idle(ctx context.Context, id, bindingID string) (instance, error) {
	if _, err := b.State.binding(ctx, id, bindingID); err != nil {
		return instance{}, err
	}
	i, err := b.State.instance(ctx, id)
	switch {
	case errors.Is(err, errNoInstance):
		return i, errNoBinding // gone with its instance, this moment
	case err == nil && i.busy():
		return i, concurrent()
	}
	return i, err
}

func (b *Broker) dropBinding(ctx context.Context, conn *pgx.Conn, i instance, id string) error {
	login := loginName(i.ID, id)
	if !i.usable() { // its database is half deleted: the login goes with the rest of it
		if err := retire(ctx, conn, login, ownerName(i.ID)); err != nil {
			return err
		}
		return b.State.setReady(ctx, i.ID, id, false)
	}
	plan, err := b.known(i.Plan)
	if err != nil {
		return err
	}
	if err := b.step("unbind: login", func() error { return b.Server.clearLogin(ctx, conn, i, plan, login) }); err != nil {
		return err
	}
	if err := b.step("unbind: role", func() error { return b.dropOrDiscard(ctx, conn, i.ID, login) }); err != nil {
		return err
	}
	return b.step("unbind: done", func() error { return b.State.deleteBinding(ctx, i.ID, id) })
}

// GetBinding gives the credentials again.
func (b *Broker) GetBinding(ctx context.Context, id, bindingID string, _ domain.FetchBindingDetails) (domain.GetBindingSpec, error) {
	x, err := b.State.binding(ctx, id, bindingID)
	if errors.Is(err, errNoBinding) || err == nil && !x.Ready {
		return domain.GetBindingSpec{}, apiresponses.ErrBindingNotFound
	}
	return domain.GetBindingSpec{Credentials: b.credentials(x), Parameters: struct{}{}}, b.answer(ctx, err)
}

// LastBindingOperation is never needed, because bindings are made and dropped at once; it answers those who ask nevertheless.
func (b *Broker) LastBindingOperation(ctx context.Context, id, bindingID string, _ domain.PollDetails) (domain.LastOperation, error) {
	x, err := b.State.binding(ctx, id, bindingID)
	if err == nil && !x.Ready {
		err = errNoBinding
	}
	return domain.LastOperation{State: domain.Succeeded}, b.answer(ctx, err)
}
