package grant

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/proa-dev/proa/auth"
	"github.com/proa-dev/proa/auth/store"
	"github.com/proa-dev/proa/kit/fault"
)

// The refusals of a login. The first is the same for a wrong password and for a name that nobody has.
var (
	errCredentials = fault.Unauthorized("The user name or the password is wrong. Check both and try again.").WithCode("unauthorized")
	// The cf CLI knows this description word for word and stops asking for the password.
	errLocked   = fault.Unauthorized("Your account has been locked because of too many failed attempts to login.").WithCode("unauthorized")
	errDisabled = fault.Unauthorized("This account is disabled. Ask an administrator to enable it.").WithCode("unauthorized")
	errPasscode = fault.Unauthorized("The passcode is wrong, used or expired. Get a new one at /passcode.").WithCode("unauthorized")
	errClient   = fault.Unauthorized("The client's id or secret is wrong. Check both and try again.").WithCode("invalid_client")
	errBusy     = fault.Unavailable("Too many logins wait for their turn. Try again in a moment.").WithCode("temporarily_unavailable")
)

// gate lets few password checks run at once: each takes 19 MiB and a core for tens of milliseconds.
type gate struct {
	running chan struct{}
	waiting chan struct{}
}

func newGate() gate {
	cores := runtime.GOMAXPROCS(0)
	return gate{running: make(chan struct{}, cores), waiting: make(chan struct{}, 64*cores)}
}

// enter waits for a turn. The turn ends with leave.
func (g gate) enter(ctx context.Context) (leave func(), err error) {
	select {
	case g.waiting <- struct{}{}:
	default:
		return nil, errBusy
	}
	defer func() { <-g.waiting }()
	select {
	case g.running <- struct{}{}:
		return func() { <-g.running }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (g gate) matches(ctx context.Context, h auth.Hash, secret string) (bool, error) {
	leave, err := g.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	return h.Matches(secret), nil
}

// Login checks a person's password. It takes as long and says the same whether or not somebody has the name.
func (e *Engine) Login(ctx context.Context, name, password, origin string) (auth.User, error) {
	if origin == "" {
		origin = auth.Internal
	}
	nameHash := auth.Digest(strings.ToLower(name) + "\x00" + origin)
	leave, err := e.gate.enter(ctx)
	if err != nil {
		return auth.User{}, err
	}
	defer leave()
	// From here on the guess counts: failures are read within the turn, so that guesses made at once do not all see none, and they
	// are written even if the guesser hangs up.
	ctx = context.WithoutCancel(ctx)
	failures, err := e.Store.Failures(ctx, nameHash)
	if err != nil {
		return auth.User{}, err
	}
	if failures.Locked(e.Now()) {
		return auth.User{}, errLocked
	}
	user, err := e.Store.UserByName(ctx, name, origin)
	if err != nil && !fault.Is(err, fault.KindNotFound) {
		return auth.User{}, err
	}
	if !user.Password.Matches(password) {
		if err := e.Store.Failed(ctx, nameHash, e.Now()); err != nil {
			return auth.User{}, err
		}
		return auth.User{}, errCredentials
	}
	if !user.Active {
		return auth.User{}, errDisabled // only to someone who knows the password
	}
	return user, e.Store.LoggedIn(ctx, nameHash, user.ID, e.Now())
}

// passcode logs a person in who has shown who they are in a browser.
func (e *Engine) passcode(ctx context.Context, code string) (auth.User, error) {
	id, err := e.Store.UsePasscode(ctx, auth.Digest(code), e.Now())
	if errors.Is(err, store.ErrNone) {
		return auth.User{}, errPasscode
	}
	if err != nil {
		return auth.User{}, err
	}
	user, err := e.Store.User(ctx, id)
	if err == nil && !user.Active {
		err = errDisabled
	}
	return user, err
}

// NewPasscode makes a passcode for a person, good once and for ten minutes.
func (e *Engine) NewPasscode(ctx context.Context, userID string) (string, error) {
	code := auth.Random()
	return code, e.Store.AddPasscode(ctx, auth.Digest(code), userID, e.Now().Add(10*time.Minute))
}

// Client finds the client that a request authenticates as, by HTTP Basic or in the form.
func (e *Engine) Client(r *http.Request) (auth.Client, error) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if id == "" {
		return auth.Client{}, errClient
	}
	c, err := e.Store.Client(r.Context(), id)
	if fault.Is(err, fault.KindNotFound) && basic {
		if decoded, derr := url.QueryUnescape(id); derr == nil && decoded != id {
			c, err = e.Store.Client(r.Context(), decoded)
		}
	}
	if err != nil && !fault.Is(err, fault.KindNotFound) {
		return auth.Client{}, err
	}
	if err == nil && c.Public() {
		if secret != "" {
			return auth.Client{}, errClient
		}
		return c, nil
	}
	good, checkErr := e.secret(r.Context(), c.Secrets, secret)
	if decoded, derr := url.QueryUnescape(secret); checkErr == nil && !good && basic && derr == nil && decoded != secret {
		good, checkErr = e.secret(r.Context(), c.Secrets, decoded) // RFC 6749 encodes what Basic carries; many programs do not
	}
	if checkErr != nil {
		return auth.Client{}, checkErr
	}
	if err != nil || !good {
		return auth.Client{}, errClient
	}
	return c, nil
}

// secret compares at full strength once, and then for a while against a proof that only this process can make.
func (e *Engine) secret(ctx context.Context, hashes []auth.Hash, secret string) (bool, error) {
	for _, h := range hashes {
		if e.proofs.holds(h, secret, e.Now()) {
			return true, nil
		}
	}
	if len(hashes) == 0 {
		hashes = []auth.Hash{""} // nobody: takes as long
	}
	for _, h := range hashes {
		good, err := e.gate.matches(ctx, h, secret)
		if err != nil {
			return false, err
		}
		if good {
			e.proofs.keep(h, secret, e.Now())
			return true, nil
		}
	}
	return false, nil
}

// proofs remembers secrets that matched, as MACs under a key that never leaves the process. A proof is filed under the hash it
// stands for: when the stored secret changes, the hash does too, and the proof is not found any more.
type proofs struct {
	key  [32]byte
	mu   sync.RWMutex
	seen map[auth.Hash]proof
}

type proof struct {
	mac   [32]byte
	until time.Time
}

const (
	proofFor  = 10 * time.Minute
	maxProofs = 10_000
)

func newProofs() *proofs {
	p := &proofs{seen: map[auth.Hash]proof{}}
	_, _ = rand.Read(p.key[:])
	return p
}

func (p *proofs) mac(secret string) (sum [32]byte) {
	m := hmac.New(sha256.New, p.key[:])
	m.Write([]byte(secret))
	m.Sum(sum[:0])
	return sum
}

func (p *proofs) holds(h auth.Hash, secret string, now time.Time) bool {
	p.mu.RLock()
	known, ok := p.seen[h]
	p.mu.RUnlock()
	mac := p.mac(secret)
	return ok && now.Before(known.until) && hmac.Equal(mac[:], known.mac[:])
}

func (p *proofs) keep(h auth.Hash, secret string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) >= maxProofs {
		clear(p.seen)
	}
	p.seen[h] = proof{mac: p.mac(secret), until: now.Add(proofFor)}
}

// CheckSecret says whether a client's secret is right.
func (e *Engine) CheckSecret(ctx context.Context, clientID, secret string) error {
	c, err := e.Store.Client(ctx, clientID)
	if err != nil {
		return err
	}
	good, err := e.secret(ctx, c.Secrets, secret)
	if err == nil && !good {
		err = errClient
	}
	return err
}
