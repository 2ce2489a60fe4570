package main

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// pace is how long the other side and the provider may take, before they act and
// again before they answer.
const pace = 80 * time.Millisecond

// side is the other side of all tools but pay: it counts, by what a request asks
// for, how often that happened. It is also the provider of the model.
type side struct {
	injector *injector
	// repeated is told of an effect that has happened more than once.
	repeated func(tool, id string, times int)

	mu       sync.Mutex
	counts   map[string]map[string]int    // by tool and id
	keys     map[string]map[string]string // by tool and key, the id
	refused  map[string]string            // by id, the key that order was refused under
	answered map[place]int                // model calls
}

func newSide(i *injector, repeated func(tool, id string, times int)) *side {
	s := &side{injector: i, repeated: repeated, counts: map[string]map[string]int{}, keys: map[string]map[string]string{},
		refused: map[string]string{}, answered: map[place]int{}}
	for _, t := range acting {
		s.counts[t], s.keys[t] = map[string]int{}, map[string]string{}
	}
	return s
}

func (s *side) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /point", func(w http.ResponseWriter, req *http.Request) {
		if p, ok := read(w, req); ok && s.injector.reach(p) {
			<-req.Context().Done() // nobody is there any more
		}
	})
	mux.HandleFunc("POST /model", s.provide)
	mux.HandleFunc("GET /look/{id}", func(w http.ResponseWriter, req *http.Request) {
		dawdle()
		write(w, http.StatusOK, receiptOf(look, req.PathValue("id")))
	})
	for _, tool := range []string{send, order, book, fire} {
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

// act does what a request asks for. It does so whether or not anybody still waits
// for the answer.
func (s *side) act(tool string, w http.ResponseWriter, req *http.Request) {
	id, key, attempt := req.PathValue("id"), req.Header.Get("Idempotency-Key"), req.Header.Get(carrier)
	delay := s.injector.arrived(attempt)
	time.Sleep(delay)
	dawdle()
	done := s.done(tool, id, key)
	s.injector.happened(attempt, delay > 0)
	dawdle()
	if !done {
		write(w, http.StatusUnprocessableEntity, map[string]string{"error": "not this time"})
		return
	}
	write(w, http.StatusOK, receiptOf(tool, id))
}

// done is one request. send and order heed the key; book keeps it, so that it can
// be asked for, and fire does not even that. False: it is refused for good.
func (s *side) done(tool, id, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tool == order {
		if s.refused[id] == "" {
			s.refused[id] = key
		}
		if s.refused[id] == key {
			return false
		}
	}
	if _, known := s.keys[tool][key]; known && (tool == send || tool == order) {
		return true
	}
	s.keys[tool][key] = id
	s.counts[tool][id]++
	if n := s.counts[tool][id]; n > 1 {
		s.repeated(tool, id, n)
	}
	return true
}

func (s *side) booked(w http.ResponseWriter, req *http.Request) {
	dawdle()
	s.mu.Lock()
	id, found := s.keys[book][req.PathValue("key")]
	s.mu.Unlock()
	if !found {
		write(w, http.StatusNotFound, "no such booking")
		return
	}
	dawdle()
	write(w, http.StatusOK, receiptOf(book, id))
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

// times is how often an effect has happened.
func (s *side) times(tool, id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[tool][id]
}

// billed is how often a model call was answered.
func (s *side) billed(p place) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered[p]
}
