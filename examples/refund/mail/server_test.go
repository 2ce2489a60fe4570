package mail_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/examples/refund/mail"
)

// serveFile makes the test binary a mail service, for a test that kills one.
const serveFile = "MAIL_TEST_SERVE_FILE"

func TestMain(m *testing.M) {
	path := os.Getenv(serveFile)
	if path == "" {
		os.Exit(m.Run())
	}
	s, err := mail.Serve(context.Background(), ":0", path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.URL())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent is gone
}

func serveAt(t *testing.T, path string) (*mail.Server, mail.Client) {
	t.Helper()
	s, err := mail.Serve(t.Context(), ":0", path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, mail.Client{BaseURL: s.URL()}
}

func serve(t *testing.T) (*mail.Server, mail.Client) {
	t.Helper()
	return serveAt(t, filepath.Join(t.TempDir(), "mail.db"))
}

// post sends a body as it is and gives the status and the answer's fields.
func post(t *testing.T, url, key, body string) (int, map[string]string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/messages", strings.NewReader(body))
	require.NoError(t, err)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var fields map[string]string
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&fields))
	return resp.StatusCode, fields
}

func TestPost(t *testing.T) {
	s, _ := serve(t)
	const body = `{"to":"c-017@customers.example","subject":"s","text":"t"}`
	status, first := post(t, s.URL(), "k", body)
	require.Equal(t, http.StatusCreated, status)
	require.NotEmpty(t, first["id"])
	status, again := post(t, s.URL(), "k", `{"text":"t", "subject":"s", "to":"c-017@customers.example"}`)
	require.Equal(t, http.StatusOK, status, "the message counts, not how it is written")
	require.Equal(t, first, again)
	status, got := post(t, s.URL(), "k", strings.Replace(body, `"t"`, `"u"`, 1))
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, got["error"], "another message")

	resp, err := http.Get(s.URL() + "/messages")
	require.NoError(t, err)
	defer resp.Body.Close()
	var list []map[string]string
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&list))
	require.Len(t, list, 1)
	require.NotEmpty(t, list[0]["stored_at"])
	delete(list[0], "stored_at")
	require.Equal(t, map[string]string{"id": first["id"], "key": "k", "to": "c-017@customers.example", "subject": "s", "text": "t"}, list[0])
}

func TestPostRefuses(t *testing.T) {
	s, _ := serve(t)
	const good = `{"to":"a@b.example","subject":"s","text":"t"}`
	for name, c := range map[string]struct {
		key, body string
		want      int
	}{
		"no key":          {"", good, 400},
		"long key":        {strings.Repeat("k", 201), good, 400},
		"empty":           {"k", "", 400},
		"no JSON":         {"k", "{", 400},
		"no object":       {"k", "[]", 400},
		"two objects":     {"k", good + good, 400},
		"unknown field":   {"k", `{"to":"a@b.example","subject":"s","text":"t","cc":"x"}`, 400},
		"no address":      {"k", `{"to":"c-017","subject":"s","text":"t"}`, 400},
		"two addresses":   {"k", `{"to":"a@b.example,c@d.example","subject":"s","text":"t"}`, 400},
		"header in to":    {"k", `{"to":"a@b.example\nBcc: c","subject":"s","text":"t"}`, 400},
		"two-line title":  {"k", `{"to":"a@b.example","subject":"s\nBcc: c@d.example","text":"t"}`, 400},
		"no text":         {"k", `{"to":"a@b.example","subject":"s"}`, 400},
		"too large":       {"k", `{"to":"a@b.example","subject":"s","text":"` + strings.Repeat("x", 64<<10) + `"}`, 413},
		"too large after": {"k", good + strings.Repeat(" ", 64<<10), 413},
	} {
		t.Run(name, func(t *testing.T) {
			status, fields := post(t, s.URL(), c.key, c.body)
			require.Equal(t, c.want, status)
			require.NotEmpty(t, fields["error"])
		})
	}
	list, err := s.Messages(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestManySendOneKeyAtOnce(t *testing.T) {
	s, c := serve(t)
	ids, errs := make([]string, 16), make([]error, 16)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			sent, err := c.SendReceipt(t.Context(), "k", receipt)
			ids[i], errs[i] = sent.ID, err
		})
	}
	wg.Wait()
	for i := range ids {
		require.NoError(t, errs[i])
		require.Equal(t, ids[0], ids[i])
	}
	list, err := s.Messages(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
}

func TestOutboxSurvivesARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mail? 1.db")
	s, c := serveAt(t, path)
	first, err := c.SendReceipt(t.Context(), "k", receipt)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "closing again does nothing")
	_, err = c.SendReceipt(t.Context(), "k", receipt)
	require.Error(t, err)

	_, c = serveAt(t, path)
	again, err := c.SendReceipt(t.Context(), "k", receipt)
	require.NoError(t, err)
	require.Equal(t, first, again)
}

// child starts a mail service in a process of its own.
func child(t *testing.T, path string) (*exec.Cmd, mail.Client) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveFile+"="+path)
	cmd.Stderr = os.Stderr
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	url, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return cmd, mail.Client{BaseURL: strings.TrimSpace(url)}
}

// The service is killed while messages stream in: all that it answered are
// there afterwards, under their ids, and each key is one message.
func TestOutboxSurvivesAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mail.db")
	cmd, c := child(t, path)
	time.AfterFunc(150*time.Millisecond, func() { _ = cmd.Process.Kill() })
	sent := map[string]string{}
	last := ""
	for i := 0; ; i++ {
		last = fmt.Sprintf("k-%d", i)
		got, err := c.SendReceipt(t.Context(), last, receipt)
		if err != nil {
			break // the kill
		}
		sent[last] = got.ID
	}
	_ = cmd.Wait()
	require.NotEmpty(t, sent)

	s, c := serveAt(t, path)
	_, err := c.SendReceipt(t.Context(), last, receipt)
	require.NoError(t, err, "the one that was cut off can be sent again")
	list, err := s.Messages(t.Context())
	require.NoError(t, err)
	require.Len(t, list, len(sent)+1)
	for _, m := range list {
		if m.Key != last {
			require.Equal(t, sent[m.Key], m.ID)
		}
	}
}

func TestServiceEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := mail.Serve(ctx, "127.0.0.1:0", filepath.Join(t.TempDir(), "mail.db"))
	require.NoError(t, err)
	s.Delay(time.Minute)
	c := mail.Client{BaseURL: s.URL()}
	failed := make(chan error, 1)
	go func() { _, err := c.SendReceipt(context.Background(), "k", receipt); failed <- err }()
	require.Eventually(t, func() bool {
		list, err := s.Messages(t.Context())
		return err == nil && len(list) == 1
	}, 5*time.Second, 5*time.Millisecond)
	cancel()
	require.NoError(t, s.Close(), "a delayed answer does not hold the end up")
	requireKind(t, mail.Unknown, <-failed)
	_, err = c.SendReceipt(t.Context(), "k", receipt)
	requireKind(t, mail.NotSent, err)
}

func TestServeRefuses(t *testing.T) {
	dir := t.TempDir()
	s, _ := serve(t)
	for name, c := range map[string][2]string{
		"no port":      {"127.0.0.1", filepath.Join(dir, "a.db")},
		"taken":        {strings.TrimPrefix(s.URL(), "http://"), filepath.Join(dir, "b.db")},
		"no file":      {":0", ""},
		"in memory":    {":0", ":memory:"},
		"a folder":     {":0", dir},
		"no such path": {":0", filepath.Join(dir, "no", "mail.db")},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := mail.Serve(t.Context(), c[0], c[1])
			require.Error(t, err)
		})
	}
}
