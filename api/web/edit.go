package web

import (
	"encoding/json"
	"fmt"
	"net/http"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/words"
	"interlock/signals"
)

// editView is the page at which the arguments of a call are changed.
type editView struct {
	Path, ID, Title, Tool string
	Digest, VerdictID     string
	Whole                 control
	Reason, Problem       string
	NoSchema              bool
}

// differView shows what an edit changes, before it is sent.
type differView struct {
	Path, ID, Title, Tool string
	Digest, VerdictID     string
	Args                  string
	Reason                string
	Rows                  []differRow
	Code                  codeView
}

type differRow struct{ Path, Old, New string }

// argsName is the name of the arguments in a form; members have it before theirs.
const argsName = "args"

// editable is the gate that the path names, where the caller may edit its call;
// ok is false where the page of the gate says why not.
func (v *visit) editable() (g foundGate, ok bool, err error) {
	if g, err = v.findGate(access.Verdict, agent.Edit); err != nil {
		return g, false, err
	}
	return g, len(g.gate.Edit) > 0 && !undoes(g.gate, g.run) && whyNot(v.caller, g.gate, g.on()) == "", nil
}

func showEdit(v *visit) error {
	g, ok, err := v.editable()
	if err != nil {
		return err
	}
	if !ok {
		v.to(gatePath(g.run.Agent, g.run.Key, g.gate.ID))
		return nil
	}
	return v.editPage(http.StatusOK, g, v.argsControl(g, g.gate.Args), editView{Digest: g.gate.Digest, VerdictID: newID("page-")})
}

// argsControl is the form of a tool's arguments.
func (v *visit) argsControl(g foundGate, args agent.JSON) control {
	t, _ := v.toolOf(g.run, g.gate.Tool)
	return controlOf(schemaOf(t.Args), args, argsName, "Arguments", false)
}

// toolOf is a tool of a run's agent, as the worker that served it described it.
func (v *visit) toolOf(run *agent.Run, name string) (agent.ToolDescription, bool) {
	d, err := v.Reader.Deployment(v.ctx, run.Agent, run.Version)
	var described agent.Description
	if err != nil || len(d.Description) == 0 || json.Unmarshal(d.Description, &described) != nil {
		return agent.ToolDescription{}, false
	}
	return described.Tool(name)
}

func (v *visit) editPage(status int, g foundGate, whole control, view editView) error {
	view.Path, view.ID, view.Title, view.Tool = gatePath(g.run.Agent, g.run.Key, g.gate.ID), g.gate.ID, g.gate.Title, g.gate.Tool
	view.Whole, view.NoSchema = whole, whole.Kind == kindJSON
	return v.page(status, "edit", "Edit gate "+g.gate.ID, view)
}

// previewEdit shows what an edit changes. Nothing is sent yet.
func previewEdit(v *visit) error {
	g, ok, err := v.editable()
	if err != nil {
		return err
	}
	view := editView{Digest: v.form("digest"), VerdictID: v.form("id"), Reason: v.form("reason")}
	if view.Digest == "" || view.VerdictID == "" {
		return agent.Errorf(agent.CodeInvalid, "the form is not whole: open the gate again and edit there")
	}
	if !ok || g.gate.Digest != view.Digest {
		return v.notDecided(g, staleOf(g.gate))
	}
	whole := v.argsControl(g, g.gate.Args)
	if v.r.PostForm.Has("again") { // back from the difference
		edited, err := agent.Canonical([]byte(v.r.PostFormValue("edited")))
		if err != nil {
			return err
		}
		return v.editPage(http.StatusOK, g, v.argsControl(g, edited), view)
	}
	args, fine := whole.fill(v.r.PostForm)
	switch {
	case !fine:
		view.Problem = "Something is wrong with the arguments: it is said where."
	case view.Reason == "":
		view.Problem = "An edit needs a reason: the model and the user are told."
	case args.Equal(g.gate.Args):
		view.Problem = "Nothing is changed: these are the arguments that the gate shows. Approve it instead."
	default:
		return v.page(http.StatusOK, "differ", "What the edit changes", differView{Path: gatePath(g.run.Agent, g.run.Key, g.gate.ID), ID: g.gate.ID, Title: g.gate.Title, Tool: g.gate.Tool,
			Digest: view.Digest, VerdictID: view.VerdictID, Args: args.String(), Reason: view.Reason, Rows: differ(g.gate.Args, args), Code: pretty(args)})
	}
	return v.editPage(http.StatusUnprocessableEntity, g, whole, view)
}

// staleOf is why a form of a gate cannot be gone on with.
func staleOf(g agent.Gate) error {
	if g.Status != agent.GateOpen {
		return agent.Errorf(agent.CodeGateClosed, "gate %s is closed", g.ID)
	}
	return agent.Errorf(agent.CodeStale, "gate %s has changed", g.ID)
}

// editOf is the verdict of an edit that was looked at.
func (v *visit) editOf(out signals.Verdict) (signals.Verdict, error) {
	if out.Reason = v.form("reason"); out.Reason == "" {
		return out, agent.Errorf(agent.CodeInvalid, "an edit needs a reason: the model and the user are told")
	}
	args, err := agent.Canonical([]byte(v.r.PostFormValue("edited")))
	if err != nil {
		return out, agent.Errorf(agent.CodeInvalid, "the edited arguments: %w", err)
	}
	out.Args = args
	return out, nil
}

// editAgain shows the form of an edit that the run did not take, as it was sent.
func (v *visit) editAgain(g foundGate, args agent.JSON, err error) error {
	whole := v.argsControl(g, args)
	whole.blame(err.Error())
	view := editView{Digest: v.form("digest"), VerdictID: v.form("id"), Reason: v.form("reason")}
	view.Problem = err.Error()
	return v.editPage(http.StatusUnprocessableEntity, g, whole, view)
}

// differ is how two values differ, member by member, as their exact JSON.
func differ(old, next agent.JSON) (out []differRow) {
	was, is := map[string]string{}, map[string]string{}
	flatten(old, "", was)
	flatten(next, "", is)
	paths := map[string]bool{}
	for p := range was {
		paths[p] = true
	}
	for p := range is {
		paths[p] = true
	}
	for _, p := range sortedKeys(paths) {
		if was[p] != is[p] {
			out = append(out, differRow{p, was[p], is[p]})
		}
	}
	return out
}

// flatten lists the values of an object and what is in it, by their pointers.
func flatten(j agent.JSON, path string, out map[string]string) {
	switch typeOf(j) {
	case "object":
		names, members := words.Members(j)
		if len(names) == 0 {
			out[path] = "{}"
		}
		for _, n := range names {
			flatten(members[n], path+"/"+pointer(n), out)
		}
	case "array":
		var all []agent.JSON
		_ = json.Unmarshal(j, &all)
		if len(all) == 0 {
			out[path] = "[]"
		}
		for i, e := range all {
			flatten(e, fmt.Sprintf("%s/%d", path, i), out)
		}
	default:
		out[path] = j.String()
	}
}
