package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// pace is how long the other side and the provider may take, before they act and
// again before they answer; slowPace is what the other side takes now and then for a
// run that has users, so that these find something under way, and what they stop
// hears of it in time: within two seconds.
const pace, slowPace = 80 * time.Millisecond, 2800 * time.Millisecond

// happening is one thing that the other side, or the product's database, has done.
type happening struct {
	tool, id string
	ref      string // what it is known by; "" of an undo
	undoes   string // the ref of what was undone
	key      string
	step     string // that asked for it
}

// side is the other side of all tools but pay: it keeps, by what a request asks for,
// all that has happened. It is also the provider of the model.
type side struct {
	injector *injector
	// repeated is told of an effect that has happened more than once, and wrong of
	// a request to the model that is none.
	repeated func(tool, id string, times int)
	wrong    func(address, text string)

	mu       sync.Mutex
	all      map[string][]happening // by the run's id
	runs     map[string]string      // by ref, the run's id
	refused  map[string]string      // by id, the key that order was refused under
	handling map[place]int          // requests of a step that are being acted on
	answered map[place]int          // model calls
}

func newSide(i *injector, repeated func(tool, id string, times int), wrong func(address, text string)) *side {
	return &side{injector: i, repeated: repeated, wrong: wrong, all: map[string][]happening{}, runs: map[string]string{},
		refused: map[string]string{}, handling: map[place]int{}, answered: map[place]int{}}
}

func (s *side) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /point", func(w http.ResponseWriter, req *http.Request) {
		if p, ok := read(w, req); ok && s.injector.reach(p) {
			<-req.Context().Done() // nobody is there any more
		}
	})
	mux.HandleFunc("POST /model", s.provide)
	mux.HandleFunc("POST /invalid", func(w http.ResponseWriter, req *http.Request) {
		if p, ok := read(w, req); ok {
			s.wrong(p.Address, fmt.Sprintf("the request of turn %s is none: %s", p.Step, p.Wrong))
		}
	})
	mux.HandleFunc("GET /look/{id}", func(w http.ResponseWriter, req *http.Request) {
		id := req.PathValue("id")
		dawdle()
		linger(id)
		write(w, http.StatusOK, receipt{look + "-" + id})
	})
	for _, tool := range []string{send, order, book, fire, ship} {
		mux.HandleFunc("POST /"+tool+"/{id}", func(w http.ResponseWriter, req *http.Request) { s.act(tool, w, req) })
	}
	for _, tool := range undoers {
		mux.HandleFunc("POST /"+tool+"/{id}", func(w http.ResponseWriter, req *http.Request) { s.act(tool, w, req) })
	}
	mux.HandleFunc("GET /booked/{key}", s.booked)
	return mux
}

func read(w http.ResponseWriter, req *http.Request) (p point, ok bool) {
	if err := json.NewDecoder(req.Body).Decode(&p); err != nil {
		write(w, http.StatusBadRequest, err.Error())
		return p, false
	}
	return p, true
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func dawdle() { time.Sleep(rand.N(pace)) }

// linger is a long time now and then, where the run has users.
func linger(id string) {
	if hasUsers(id) && rand.IntN(3) == 0 {
		time.Sleep(rand.N(slowPace))
	}
}

// act does what a request asks for. It does so whether or not anybody still waits
// for the answer.
func (s *side) act(tool string, w http.ResponseWriter, req *http.Request) {
	what, key, attempt := req.PathValue("id"), req.Header.Get("Idempotency-Key"), req.Header.Get(carrier)
	at := placeOf(attempt)
	s.handle(at, 1)
	defer s.handle(at, -1)
	delay := s.injector.arrived(attempt)
	time.Sleep(delay)
	dawdle()
	before := rand.IntN(2) == 0 // it acts; else before it answers
	if before {
		linger(what)
	}
	r, done := s.done(tool, what, key, at.step)
	s.injector.happened(attempt, delay > 0)
	dawdle()
	if !before {
		linger(what)
	}
	if !done {
		write(w, http.StatusUnprocessableEntity, map[string]string{"error": "not this time"})
		return
	}
	write(w, http.StatusOK, r)
}

func (s *side) handle(at place, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handling[at] += n
}

// done is one request; what is the run's id, or what is to be undone. Keyed tools'
// other sides heed the key; that of Reconcilable ones keeps it, so that it can be
// asked for, and that of Once ones does not even that. False: it is refused for good.
func (s *side) done(tool, what, key, step string) (receipt, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tool == order {
		if s.refused[what] == "" {
			s.refused[what] = key
		}
		if s.refused[what] == key {
			return receipt{}, false
		}
	}
	h := happening{tool: tool, id: what, key: key, step: step}
	if strings.HasPrefix(tool, "un") {
		h.id, h.undoes = s.runs[what], what
	}
	heeds := slices.Contains([]string{send, order, ship, unsend, unship}, tool)
	total, same := 0, 0
	for _, o := range s.all[h.id] {
		switch {
		case o.tool != tool:
		case heeds && o.key == key:
			return o.receipt(), true
		default:
			total++
			if o.step == step || o.undoes != "" && o.undoes == h.undoes {
				same++
			}
		}
	}
	if h.undoes == "" {
		h.ref = fmt.Sprintf("%s-%s-%d", tool, h.id, total+1)
		s.runs[h.ref] = h.id
	}
	s.all[h.id] = append(s.all[h.id], h)
	if same > 0 {
		s.repeated(tool, h.id, same+1)
	} else if total > 0 && !hasUsers(h.id) {
		s.repeated(tool, h.id, total+1)
	}
	return h.receipt(), true
}

// receipt is what the other side answers of it.
func (h happening) receipt() receipt {
	if h.undoes != "" {
		return receipt{"un" + h.undoes}
	}
	return receipt{h.ref}
}

// booked is asked about keys of books and their undos.
func (s *side) booked(w http.ResponseWriter, req *http.Request) {
	found := s.byKey(req.PathValue("key"))
	if found == nil {
		write(w, http.StatusNotFound, "no such booking")
		return
	}
	dawdle()
	write(w, http.StatusOK, found.receipt())
}

func (s *side) byKey(key string) *happening {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.all {
		for _, h := range all {
			if h.key == key && (h.tool == book || h.tool == unbook) {
				return &h
			}
		}
	}
	return nil
}

// provide is a model's provider: it bills each call.
func (s *side) provide(w http.ResponseWriter, req *http.Request) {
	p, ok := read(w, req)
	if !ok {
		return
	}
	dawdle()
	s.mu.Lock()
	s.answered[p.place()]++
	s.mu.Unlock()
	dawdle()
	write(w, http.StatusOK, nil)
}

// happenings are all that has happened for a run.
func (s *side) happenings(id string) []happening {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all[id])
}

// idle reports that no request of a step is being acted on.
func (s *side) idle(p place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handling[p] == 0
}

// billed is how often a model call was answered.
func (s *side) billed(p place) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered[p]
}
