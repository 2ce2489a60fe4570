package main

import (
	"context"
	"sync"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"interlock/activities"
	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/replaytests/internal/parcel"
	"interlock/signals"
	"interlock/tool"
	"interlock/worker"
)

func scenarios() []scenario {
	return []scenario{
		{name: "plain", run: plain},
		{name: "approved", run: decided(agent.Approve, "")},
		{name: "rejected", run: decided(agent.Reject, "the warranty is over")},
		{name: "three-tools", run: parcelRun(parcel.World{}, whole...)},
		{name: "quick-tool", run: parcelRun(parcel.World{}, scripted.Call("zone", theParcel), whole[0], whole[1], whole[2], whole[3])},
		{name: "cancelled-mid-tool", run: cancelledMidTool},
		{name: "cancelled-at-once", run: cancelledAtOnce},
		{name: "worker-killed", run: workerKilled},
		{name: "continued", run: continued},
		{name: "said-at-once", run: saidAtOnce},
		{name: "interrupted", run: interrupted},
		{name: "rolled-back", run: rolledBack},
		{name: "rolled-back-fields", run: rolledBackFields},
		{name: "cancelled-undone", run: cancelledAndUndone},
		{name: "edited", run: edited},
		{name: "taken-back", run: takenBack},
		{name: "expired", run: expired},
		{name: "in-time", run: inTime},
		{name: "ruled", run: ruled},
		{name: "in-doubt", run: inDoubt},
		{name: "signed", run: signed},
		{name: "repaired", run: repaired},
		{name: "notice-told", run: noticeTold},
		{name: "notice-dead", run: noticeDead},
		{name: "notice-retold", run: noticeRetold},
		{name: "swept", run: sweep},
		{name: "resolved", run: resolved},
		{name: "bad-changed-commit", run: parcelRun(parcel.World{Surcharge: 1}, whole...),
			want: "data.patch.fee.minor: recorded 491, now 490"},
		{name: "bad-changed-guard", run: changedGuard, want: `data.status: recorded "refused", now "done"`},
		{name: "bad-changed-command", run: changedCommand, want: "activity audit, now Record"},
	}
}

var theParcel = parcel.Args{ParcelID: "p-7"}

// whole is a script from three tools in one turn to the last word.
var whole = []llm.Response{
	scripted.Then(scripted.Call("locate", theParcel), scripted.Call("quote", theParcel), scripted.Call("hold", theParcel)),
	scripted.Call(agent.CallMove, scripted.Args{"to": "check"}),
	scripted.Call(agent.CallMove, scripted.Args{"to": "closed"}),
	scripted.Call(agent.CallFinish, scripted.Args{"text": "The parcel is kept; sending it back costs 4.90 EUR."}),
}

// filled gives a world the functions that it lacks; they answer at once.
func filled(w parcel.World) parcel.World {
	w.Quote = func(context.Context, parcel.Args) (parcel.Quote, error) {
		return parcel.Quote{Fee: agent.Money{Minor: 490, Currency: "EUR"}}, nil
	}
	w.Zone = func(context.Context, parcel.Args) (parcel.Zone, error) { return parcel.Zone{Name: "north"}, nil }
	if w.Locate == nil {
		w.Locate = func(context.Context, parcel.Args) (parcel.Place, error) { return parcel.Place{Depot: "Lyon 2"}, nil }
	}
	if w.Hold == nil {
		w.Hold = func(context.Context, tool.Key, parcel.Args) (parcel.Hold, error) { return parcel.Hold{ID: "h-7"}, nil }
	}
	return w
}

func (w *world) startParcel(ctx context.Context) (string, error) {
	return w.start(ctx, "parcel", "u-1", parcel.Start(theParcel), "Please stop my parcel.")
}

func parcelRun(p parcel.World, turns ...llm.Response) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		if err := w.serve(ctx, scripted.New("script", turns...), parcel.Agent(filled(p))); err != nil {
			return "", err
		}
		address, err := w.startParcel(ctx)
		if err != nil {
			return "", err
		}
		return address, w.untilClosed(ctx, address, agent.RunCompleted)
	}
}

// continued goes on over several Temporal runs, with an amend, a pause and its
// resume, and a wait on the way.
func continued(ctx context.Context, w *world) (string, error) {
	var script []llm.Response
	for range 6 {
		script = append(script, scripted.Call("locate", theParcel), scripted.Say("It lies in Lyon."))
	}
	script = append(script, scripted.MoveTo("check"), scripted.MoveTo("closed"), scripted.Finish("That was all."))
	p := filled(parcel.World{Limits: agent.Limits{History: 60}})
	if err := w.serve(ctx, scripted.New("script", script...), parcel.Agent(p)); err != nil {
		return "", err
	}
	address, err := w.startParcel(ctx)
	if err != nil {
		return "", err
	}
	depot := agent.Principal{Subject: "depot"}
	for n := range 6 {
		if n > 0 {
			if err := w.say(ctx, address, "u-1", "And now?"); err != nil {
				return "", err
			}
		}
		if _, err := w.until(ctx, address, "an answer", func(r *agent.Run) bool { return r.Turn == 2*n+2 && r.Status == agent.RunWaiting }); err != nil {
			return "", err
		}
		switch n {
		case 1:
			_, err = w.starter.Amend(ctx, address, signals.Amend{ID: "a1", Principal: depot, Fields: agent.JSON(`{"remark":"wet"}`)})
		case 3:
			_, err = w.starter.Pause(ctx, address, signals.Pause{ID: "p1", Principal: depot, Reason: "a look"})
		case 4:
			_, err = w.starter.Wait(ctx, address, 0)
		}
		if n == 3 && err == nil {
			_, err = w.starter.Resume(ctx, address, signals.Resume{ID: "r1", Principal: depot})
		}
		if err != nil {
			return "", err
		}
	}
	if err := w.say(ctx, address, "u-1", "Thank you."); err != nil {
		return "", err
	}
	return address, w.untilClosed(ctx, address, agent.RunCompleted)
}

// cancelledMidTool cancels while two tools run: the one that reads is let go of,
// the one with an effect is waited for.
func cancelledMidTool(ctx context.Context, w *world) (string, error) {
	var running sync.WaitGroup
	running.Add(2)
	release := make(chan struct{})
	p := parcel.World{
		Locate: func(ctx context.Context, _ parcel.Args) (parcel.Place, error) {
			running.Done()
			<-ctx.Done()
			return parcel.Place{}, ctx.Err()
		},
		Hold: func(context.Context, tool.Key, parcel.Args) (parcel.Hold, error) {
			running.Done()
			<-release
			return parcel.Hold{ID: "h-7"}, nil
		},
	}
	if err := w.serve(ctx, scripted.New("script", whole...), parcel.Agent(filled(p))); err != nil {
		return "", err
	}
	address, err := w.startParcel(ctx)
	if err != nil {
		return "", err
	}
	running.Wait()
	_, err = w.starter.Cancel(ctx, address, signals.Cancel{ID: "c1", Principal: agent.Principal{Subject: "u-1"}, Reason: "I have it"})
	close(release)
	if err != nil {
		return "", err
	}
	return address, w.untilClosed(ctx, address, agent.RunCancelled)
}

// cancelledAtOnce has its message and its cancel in the first workflow task: the
// model call waits for the first record, and is let go of before it is scheduled.
func cancelledAtOnce(ctx context.Context, w *world) (string, error) {
	address, err := w.startParcel(ctx)
	if err != nil {
		return "", err
	}
	c := signals.Cancel{ID: "c1", Principal: agent.Principal{Subject: "u-1"}, Reason: "I have it"}
	if err := w.client.SignalWorkflow(ctx, address, "", signals.NameCancel, c); err != nil {
		return "", err
	}
	if err := w.serve(ctx, scripted.New("script", whole...), parcel.Agent(filled(parcel.World{}))); err != nil {
		return "", err
	}
	return address, w.untilClosed(ctx, address, agent.RunCancelled)
}

// saidAtOnce has four messages in the first workflow task: the first calls the
// model, and one record is under way for all others, not one for each.
func saidAtOnce(ctx context.Context, w *world) (string, error) {
	address, err := w.startParcel(ctx)
	if err != nil {
		return "", err
	}
	for _, text := range []string{"Are you there?", "It is p-7.", "Hello?"} {
		m := signals.Message{ID: text, Principal: agent.Principal{Subject: "u-1"}, Text: text}
		if err := w.client.SignalWorkflow(ctx, address, "", signals.NameMessage, m); err != nil {
			return "", err
		}
	}
	script := append([]llm.Response{scripted.Say("One moment.")}, whole...)
	if err := w.serve(ctx, scripted.New("script", script...), parcel.Agent(filled(parcel.World{}))); err != nil {
		return "", err
	}
	return address, w.untilClosed(ctx, address, agent.RunCompleted)
}

// changedGuard is refused by its guard where the present one lets it through.
// After either the model is called, and after its answer the run waits for the
// user: there is no command that differs. The run is still under way.
func changedGuard(ctx context.Context, w *world) (string, error) {
	turns := []llm.Response{whole[0], whole[1], scripted.Say("I do not know the zone.")}
	if err := w.serve(ctx, scripted.New("script", turns...), parcel.Agent(filled(parcel.World{NeedsZone: true}))); err != nil {
		return "", err
	}
	address, err := w.startParcel(ctx)
	if err != nil {
		return "", err
	}
	run, err := w.until(ctx, address, "the answer", func(r *agent.Run) bool { return r.Status == agent.RunWaiting && r.Reason == "user" })
	if err != nil {
		return "", err
	}
	return address, w.untilRecorded(ctx, run)
}

// changedCommand is a run of an interpreter that schedules one activity more.
func changedCommand(ctx context.Context, w *world) (string, error) {
	registry, err := agent.NewRegistry(parcel.Agent(filled(parcel.World{})))
	if err != nil {
		return "", err
	}
	wk := sdk.New(w.client, w.name, sdk.Options{DisableRegistrationAliasing: true, Interceptors: []interceptor.WorkerInterceptor{&auditing{}}})
	worker.Register(wk, registry, &activities.Activities{Agents: registry, Store: w.store, Log: quiet,
		Model: func(*agent.Definition) (llm.Model, error) { return scripted.New("script", whole...), nil }})
	wk.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: "audit"})
	if err := wk.Start(); err != nil {
		return "", err
	}
	defer wk.Stop()
	address, err := w.startParcel(ctx)
	if err != nil {
		return "", err
	}
	return address, w.untilClosed(ctx, address, agent.RunCompleted)
}

// auditing schedules an activity of its own beside the first record.
type auditing struct {
	interceptor.WorkerInterceptorBase
}

func (*auditing) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &auditingInbound{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type auditingInbound struct {
	interceptor.WorkflowInboundInterceptorBase
}

func (i *auditingInbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: recordTimeout}), "audit")
	return i.Next.ExecuteWorkflow(ctx, in)
}

// isActivity accepts the event of an activity's schedule.
func isActivity(name string) func(*historypb.HistoryEvent) bool {
	return func(e *historypb.HistoryEvent) bool {
		return e.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED && e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == name
	}
}
