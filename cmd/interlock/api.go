package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"interlock/api"
	"interlock/api/access"
	"interlock/api/web"
	"interlock/config"
	"interlock/starter"
	"interlock/store"
	"interlock/token"
	"interlock/worker"
)

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Serves the HTTP API and the reviewers' pages", Args: cobra.NoArgs,
		Long: `Serves the HTTP API (docs/http.md), and the reviewers' pages at /, until SIGINT or SIGTERM: then it takes no new
request, lets those under way end within shutdown_timeout, and exits with 0. A second
signal ends it at once. It keeps nothing: run as many as you like.

The store must be there (` + "`interlock migrate`" + `), and so must a file of access tokens
(` + "`interlock access new`" + `), or an OpenID Connect provider (api.oidc.issuer): without
either nobody could be told from anybody, so it does not begin. Temporal may be away: /readyz says so. What it sends to runs is signed where
tokens.sign_with is set.

It speaks plain HTTP: before anything but this machine put a proxy that speaks TLS.`,
		Example: `  interlock serve --api-access /etc/interlock/access.yaml --api-listen 0.0.0.0:8088`,
	}
	a.configured(cmd.Flags(), slices.Concat([]string{"task_queue", "shutdown_timeout", "api.listen", "api.admin_listen", "api.access", "api.session_key_file", "api.rate",
		"api.oidc.issuer", "api.oidc.audience", "api.oidc.subject_claim", "api.oidc.tenant_claim", "api.oidc.may_claim", "api.oidc.roles_claim",
		"tokens.issuer", "tokens.audience", "tokens.sign_with"}, storeKeys, temporalKeys, logKeys)...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := a.settings(cmd, "info")
		if err != nil {
			return err
		}
		return a.serveAPI(cmd.Context(), cfg)
	}
	return cmd
}

// serveAPI serves until ctx ends.
func (a *app) serveAPI(ctx context.Context, cfg config.Config) (err error) {
	log := cfg.Log.Logger(a.err)
	d := &door{log: log, grace: cfg.ShutdownTimeout}
	if err = d.admits(cfg.API, log); err != nil {
		return err
	}
	if d.sessions, err = openSessions(cfg.API, d.credentials()); err != nil { // a wrong key is told now, and not with the first session
		return err
	}
	signing, err := signerOf(cfg)
	if err != nil {
		return err
	}
	st, err := worker.OpenStore(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	options, err := config.TemporalOptions(cfg)
	if err != nil {
		return usageError{err}
	}
	options.Logger = sdklog.NewStructuredLogger(log)
	c, err := client.NewLazyClient(options)
	if err != nil {
		return usageError{fmt.Errorf("how to reach Temporal: %w", err)}
	}
	defer c.Close()
	if err := d.open(ctx, cfg, starter.New(c, append(signing, starter.WithReader(st), starter.WithTaskQueue(cfg.TaskQueue))...), st, c); err != nil {
		return err
	}
	if err := d.openAdmin(cfg.API); err != nil {
		return err
	}
	log.Info("the HTTP API listens", "address", d.public.Addr().String(), "pages", "http://"+d.public.Addr().String()+"/", "admin", d.admin.Addr().String(), "access", cfg.API.Access)
	return d.serve(ctx)
}

// openAccess reads the file of access tokens.
func openAccess(c config.API, log *slog.Logger) (*access.Tokens, error) {
	if c.Access == "" {
		return nil, usagef("no file of access tokens is named, so it does not listen at %s: everybody who reaches it could do everything, or nobody anything. Make one by `interlock access new`, and name it by --api-access, INTERLOCK_API_ACCESS or the file's key api.access", c.Listen)
	}
	tokens, err := access.OpenTokens(c.Access, log)
	if err != nil {
		return nil, usageError{err}
	}
	return tokens, nil
}

// admits opens what callers are recognised by: access tokens of a file, bearer tokens
// of a provider, or both.
func (d *door) admits(c config.API, log *slog.Logger) (err error) {
	d.checks = map[string]func(context.Context) error{}
	if c.Access != "" || c.OIDC.Issuer == "" {
		if d.tokens, err = openAccess(c, log); err != nil {
			return err
		}
		d.auth, d.checks["access"] = d.tokens, d.tokens.Check
	}
	if o := c.OIDC; o.Issuer != "" {
		provider, err := access.NewOIDC(access.Provider{Issuer: o.Issuer, Audience: o.Audience, Subject: o.SubjectClaim, Tenant: o.TenantClaim,
			May: o.MayClaim, Roles: o.RolesClaim}, log)
		if err != nil {
			return usageError{err}
		}
		d.auth = access.Either{Static: d.auth, OIDC: provider}
	}
	return nil
}

// credentials are those that a session can be begun with.
func (d *door) credentials() access.Credentials {
	if d.tokens == nil {
		return access.NoCredentials{}
	}
	return d.tokens
}

// openSessions makes the sessions of browsers. Without a key they end with this
// process.
func openSessions(c config.API, of access.Credentials) (*access.Sessions, error) {
	var key []byte
	if c.SessionKeyFile != "" {
		var err error
		if key, err = access.ReadSessionKey(c.SessionKeyFile); err != nil {
			return nil, usageError{err}
		}
	}
	return access.NewSessions(key, of)
}

// signerOf signs what is sent to runs, where there is a key.
func signerOf(cfg config.Config) ([]starter.Option, error) {
	if cfg.Tokens.SignWith == "" {
		return nil, nil
	}
	signer, err := token.OpenSigner(cfg.Tokens.SignWith)
	if err != nil {
		return nil, usageError{err}
	}
	return []starter.Option{starter.WithSigner(signer, cfg.Tokens.Issuer, cfg.Tokens.Audience)}, nil
}

// door is where the HTTP API and the pages listen. Without an admin listener there is none.
type door struct {
	log           *slog.Logger
	grace         time.Duration
	tokens        *access.Tokens // nil: none of a file are believed
	auth          access.Authenticator
	checks        map[string]func(context.Context) error
	sessions      *access.Sessions // nil: of a key of their own
	server        *api.Server
	pages         *web.Pages
	public, admin net.Listener
	closing       context.Context // ended: it is about to stop
}

// open makes the server and listens; nobody is answered yet.
func (d *door) open(ctx context.Context, cfg config.Config, runs *starter.Starter, st store.Store, c client.Client) (err error) {
	d.closing = ctx
	d.checks["store"] = func(ctx context.Context) error { _, err := st.AllDeployed(ctx); return err }
	d.checks["temporal"] = func(ctx context.Context) error {
		_, err := c.CheckHealth(ctx, &client.CheckHealthRequest{})
		return err
	}
	d.checks["staying"] = func(context.Context) error {
		if d.closing.Err() != nil {
			return errors.New("it is stopping")
		}
		return nil
	}
	d.server, err = api.New(api.Config{Runs: runs, Reads: st, Auth: d.auth, Log: d.log, Limits: api.Limits{Rate: float64(cfg.API.Rate)},
		Checks: d.checks})
	if err != nil {
		return err
	}
	if d.sessions == nil {
		if d.sessions, err = openSessions(cfg.API, d.credentials()); err != nil {
			return err
		}
	}
	d.pages, err = web.New(web.Config{Starter: runs, Reader: st, Auth: d.auth, Sessions: d.sessions, Audit: access.NewAudit(d.log), Log: d.log, Rate: float64(cfg.API.Rate), GiveUp: cfg.Notices.GiveUp})
	if err != nil {
		return err
	}
	if d.public, err = net.Listen("tcp", cfg.API.Listen); err != nil {
		return fmt.Errorf("the HTTP API: %w: stop what uses the port, or choose another by --api-listen", err)
	}
	return nil
}

// handler is the API, and the pages for every other path.
func (d *door) handler() http.Handler {
	mux := http.NewServeMux()
	served := d.server.Handler()
	mux.Handle("/v1/", served)
	mux.Handle("/openapi.json", served)
	mux.Handle("/", d.pages.Handler())
	return mux
}

// openAdmin listens for operators.
func (d *door) openAdmin(cfg config.API) (err error) {
	if d.admin, err = net.Listen("tcp", cfg.AdminListen); err != nil {
		return errors.Join(fmt.Errorf("the operators' port: %w: stop what uses it, or choose another by --api-admin-listen", err), d.public.Close())
	}
	return nil
}

// serve answers until ctx ends. The operators' port is the last to close: it says
// meanwhile that this process is not ready any more.
func (d *door) serve(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	write := api.DefaultLimits().Deadline + 10*time.Second
	var failed [2]error
	var public, all sync.WaitGroup
	adminEnds, endAdmin := context.WithCancel(context.WithoutCancel(ctx))
	defer endAdmin()
	public.Go(func() {
		defer stop() // one that fails ends the other
		failed[0] = api.Serve(ctx, d.public, d.handler(), write, d.grace, d.log, d.server.EndStreams, d.pages.EndStreams)
	})
	if d.admin != nil {
		all.Go(func() {
			defer stop()
			failed[1] = api.Serve(adminEnds, d.admin, d.server.Admin(), write, time.Second, d.log)
		})
	}
	public.Wait()
	endAdmin()
	all.Wait()
	return errors.Join(failed[:]...)
}
