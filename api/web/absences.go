package web

import (
	"net/http"
	"time"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/desk"
)

// absencesView is who is away, and who stands in.
type absencesView struct {
	Rows     []absenceRow
	Operator bool
	Own      bool // the caller is away, or is going to be
	Problem  string
	// As they were sent.
	Subject, Cover, From, Until string
}

type absenceRow struct {
	Subject, Cover, By string
	From, Until        moment
	Begun              bool
	MayEnd             bool
	Covers             string // who looks at their gates in the end, where that is somebody else
}

// inForm is a time of a form, in UTC as all times of the pages are.
const inForm = "2006-01-02T15:04"

func showAbsences(v *visit) error {
	if err := v.audited(access.Absences, "", access.Check(v.caller, access.Absences, access.On{})); err != nil {
		return err
	}
	return v.absencesPage(http.StatusOK, absencesView{})
}

func (v *visit) absencesPage(status int, view absencesView) error {
	d, err := desk.Open(v.ctx, v.Reader, v.caller.Tenant, v.now)
	if err != nil {
		return err
	}
	view.Operator = v.caller.Is(access.Operator)
	for _, a := range d.Absences {
		row := absenceRow{Subject: a.Subject, Cover: a.Cover, From: v.moment(a.From), Until: v.moment(a.Until), Begun: !v.now.Before(a.From)}
		if a.By != a.Subject {
			row.By = a.By
		}
		if covers := d.Covering(a.Subject); row.Begun && covers != a.Cover {
			row.Covers = covers
		}
		_, err := desk.Whose(v.caller, a.Subject)
		row.MayEnd = err == nil
		view.Own = view.Own || a.Subject == v.caller.Subject
		view.Rows = append(view.Rows, row)
	}
	return v.page(status, "absences", "Absences", view)
}

// setAbsence says that somebody is away. What is wrong is told at the form.
func setAbsence(v *visit) error {
	if err := access.Check(v.caller, access.Absences, access.On{}); err != nil {
		return v.audited(access.Absences, "", err)
	}
	subject, err := desk.Whose(v.caller, v.form("subject"))
	if err == nil {
		err = v.absence(subject)
	}
	switch err = v.audited(access.Absences, subject, err); agent.ErrorCode(err) {
	case agent.CodeInvalid:
		return v.absencesPage(http.StatusUnprocessableEntity, absencesView{Problem: err.Error(), Subject: v.form("subject"), Cover: v.form("cover"), From: v.form("from"), Until: v.form("until")})
	default:
		if err != nil {
			return err
		}
	}
	v.to("/absences")
	return nil
}

func (v *visit) absence(subject string) error {
	from, err := timeOf("from", v.form("from"))
	if err != nil {
		return err
	}
	if err := needed(v.form("until"), "say until when they are away"); err != nil {
		return err
	}
	until, err := timeOf("until", v.form("until"))
	if err != nil {
		return err
	}
	if err := needed(v.form("cover"), "name who stands in"); err != nil {
		return err
	}
	if !until.After(v.now) {
		return agent.Errorf(agent.CodeInvalid, "an absence that has ended already changes nothing: give a later end")
	}
	_, err = desk.SetAbsence(v.ctx, v.Reader, v.caller, subject, v.form("cover"), from, until, v.now)
	return err
}

// timeOf is a time that a form sent; the zero one where it sent none.
func timeOf(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{inForm, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, agent.Errorf(agent.CodeInvalid, "%q is no time for %s: write it as 2026-03-31T17:00, in UTC", text, name)
}

func endAbsence(v *visit) error {
	if err := access.Check(v.caller, access.Absences, access.On{}); err != nil {
		return v.audited(access.Absences, "", err)
	}
	subject, err := desk.Whose(v.caller, v.form("subject"))
	if err == nil {
		err = desk.EndAbsence(v.ctx, v.Reader, v.caller, subject)
	}
	if err = v.audited(access.Absences, subject, err); err != nil {
		return err
	}
	v.to("/absences")
	return nil
}
