package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// Opening a gate takes it from nobody; a button does, and others are told before they
// decide, and may all the same.
func TestDesk(t *testing.T) {
	w := newWorld(t)
	run := w.atGate("1", payOptions{}, smallArgs)
	w.atGate("2", payOptions{}, smallArgs)
	ann, bob, oda, at := w.as("ann"), w.as("bob"), w.as("oda"), path("1", "2.1")
	require.Contains(t, ann.get(at).body, "Take it for 15 min")
	require.Contains(t, bob.get(at).body, "Nobody. Take it", "a look takes nothing")

	require.Equal(t, at, ann.post(at+"/take", nil).at)
	require.Contains(t, w.audit.last("gate.assign"), `"target":"acme/pay/1#2.1"`)
	require.Contains(t, ann.get(at).body, "<strong>You</strong> look at it until <time datetime=\"2026-03-01T12:16:00Z\"")
	others := bob.get(at)
	require.Contains(t, others.body, "You may decide all the same.")
	require.Contains(t, others.body, `value="approve"`)
	require.NotContains(t, others.body, at+"/take")
	require.Contains(t, bob.get("/").body, "looked at</b>")
	require.Equal(t, []string{"1"}, ann.get("/?desk=mine").order())
	require.Equal(t, []string{"2"}, ann.get("/?desk=nobody").order())
	require.Empty(t, bob.get("/?desk=mine").order())
	require.Len(t, bob.get("/?desk=else").order(), 2)

	refused := bob.post(at+"/take", nil)
	require.Equal(t, http.StatusConflict, refused.status)
	require.Contains(t, refused.body, "ann looks at it until 2026-03-01T12:16:00Z: they can hand it over")
	bob.post(at+"/let-go", nil)
	require.Equal(t, []string{"1"}, ann.get("/?desk=mine").order(), "it is not bob's to let go")

	empty := ann.post(at+"/hand", url.Values{"to": {" "}})
	require.Equal(t, http.StatusUnprocessableEntity, empty.status)
	require.Contains(t, empty.body, "name the colleague")
	require.Equal(t, at, ann.post(at+"/hand", url.Values{"to": {"bob"}}).at)
	require.Contains(t, bob.get("/?desk=mine").body, "handed over by")
	require.Equal(t, http.StatusConflict, ann.post(at+"/take", nil).status)
	require.Contains(t, w.as("mail").get(at).body, "Deciding needs role refunds")
	require.NotContains(t, w.as("mail").get(at).body, "Who looks at it", "who may not decide does not take it")
	require.Contains(t, oda.get(at).body, "Take it over for 15 min")
	require.Equal(t, at, oda.post(at+"/take", nil).at)
	require.Equal(t, []string{"2"}, ann.get("/?desk=nobody").order())

	form := with(ann.get(at).form(`value="approve"`), "verdict", "approve")
	require.Equal(t, http.StatusSeeOther, ann.post(at+"/verdict", form).status)
	require.Equal(t, agent.GateApproved, run.Gate("2.1").Status)
	closed := ann.post(at+"/take", nil)
	require.Equal(t, http.StatusConflict, closed.status)
	require.Contains(t, closed.body, "decided by ann")
	require.NotContains(t, closed.body, "Who looks at it")
}

func TestDesk_EndsByItself(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, smallArgs)
	ann := w.as("ann")
	ann.post(path("1", "2.1")+"/take", nil)
	w.now = w.now.Add(15 * time.Minute)
	require.Equal(t, []string{"1"}, w.as("bob").get("/?desk=nobody").order())
	require.Equal(t, http.StatusSeeOther, w.as("bob").post(path("1", "2.1")+"/take", nil).status)
}

// Who stands in for somebody has their gates while they are away.
func TestAbsences(t *testing.T) {
	w := newWorld(t)
	w.atGate("1", payOptions{}, smallArgs)
	ann, bob, oda := w.as("ann"), w.as("bob"), w.as("oda")
	ann.post(path("1", "2.1")+"/take", nil)
	require.Contains(t, ann.get("/absences").body, "Nobody is away.")
	far := ann.post(path("1", "2.1")+"/hand", url.Values{"to": {strings.Repeat("x", 201)}})
	require.Equal(t, http.StatusUnprocessableEntity, far.status, "everybody's page would have to show it")
	form := url.Values{"cover": {"bob"}, "from": {""}, "until": {"2026-03-02T08:00"}}
	require.Equal(t, http.StatusForbidden, bob.post("/absences", with(form, "subject", "ann")).status)
	for field, values := range map[string][]string{"until": {"", "soon", "2026-03-01T11:00"}, "cover": {"", "ann", strings.Repeat("x", 201), "b\nob"}, "from": {"2026-03-03T08:00", "x"}} {
		for _, value := range values {
			wrong := ann.post("/absences", with(form, field, value))
			require.Equal(t, http.StatusUnprocessableEntity, wrong.status, "%s=%s", field, value)
			require.Contains(t, wrong.body, "Not sent.")
		}
	}
	require.Equal(t, "/absences", ann.post("/absences", form).at)
	page := bob.get("/absences")
	require.Contains(t, page.body, "stands in")
	require.NotContains(t, page.body, "/absences/end", "it is not his to end")
	require.Contains(t, bob.get("/?desk=mine").body, "standing in for")
	require.Contains(t, bob.get(path("1", "2.1")).body, "<strong>You</strong> look at it, standing in for")

	require.Equal(t, http.StatusForbidden, bob.post("/absences/end", url.Values{"subject": {"ann"}}).status)
	end := oda.get("/absences").form("/absences/end")
	require.Equal(t, "ann", end.Get("subject"))
	require.Equal(t, "/absences", oda.post("/absences/end", end).at)
	require.Empty(t, bob.get("/?desk=mine").order())

	require.Equal(t, "/absences", oda.post("/absences", with(form, "subject", "bob", "cover", "ann", "from", "2026-03-02T00:00")).at)
	require.Contains(t, ann.get("/absences").body, "to come")
	require.Contains(t, w.audit.last(`"act":"absences"`), `"outcome":"ok"`)
	require.Equal(t, http.StatusForbidden, w.as("c-017").get("/absences").status)
	require.NotContains(t, w.as("c-017").get("/").body, "/absences")
	require.NotContains(t, w.as("eve").get("/absences").body, "bob")
}
