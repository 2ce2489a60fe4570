package mail

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxBody bounds a message, in bytes.
const maxBody = 64 << 10

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /messages", s.post)
	mux.HandleFunc("GET /messages", s.get)
	return mux
}

// post stores a message before it answers: 201 is a promise. A repeat gets the
// id of the first with 200; another message under the same key gets 409.
func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	if err := checkKey(key); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	m, err := readMessage(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the message is larger than %d bytes", maxBody))
		return
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	id, isNew, err := s.outbox.put(r.Context(), key, m)
	switch {
	case errors.Is(err, errOtherMessage):
		refuse(w, http.StatusConflict, err.Error())
		return
	case err != nil:
		refuse(w, http.StatusInternalServerError, "the outbox cannot be written")
		return
	}
	if s.lost(r) {
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
	status := http.StatusOK
	if isNew {
		status = http.StatusCreated
	}
	answerJSON(w, status, Sent{ID: id})
}

// lost waits as [Server.Delay] says and tells whether the answer is lost: by
// [Server.DropNext], or because the service ended or the sender went.
func (s *Server) lost(r *http.Request) bool {
	if s.drops.Add(-1) >= 0 {
		return true
	}
	d := time.Duration(s.delay.Load())
	if d <= 0 {
		return false
	}
	select {
	case <-time.After(d):
		return false
	case <-r.Context().Done():
		return true
	}
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	list, err := s.outbox.list(r.Context())
	if err != nil {
		refuse(w, http.StatusInternalServerError, "the outbox cannot be read")
		return
	}
	answerJSON(w, http.StatusOK, list)
}

// readMessage reads exactly one JSON object with the fields of a message.
func readMessage(body io.Reader) (Message, error) {
	var m Message
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("the body is not a message: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			return m, err
		}
		return m, errors.New("the body is more than one message")
	}
	return m, m.check()
}

func refuse(w http.ResponseWriter, status int, why string) {
	answerJSON(w, status, map[string]string{"error": why})
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error means that the reader has gone
}
