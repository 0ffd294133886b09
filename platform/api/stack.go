package api

import (
	"net/http"
	"strconv"

	"github.com/proa-dev/proa/kit/web"
	"github.com/proa-dev/proa/platform"
)

func (s *Server) listStacks(w http.ResponseWriter, r *http.Request, _ platform.Who) error {
	l, err := readList(r, "name")
	if err != nil {
		return err
	}
	page := static(l, s.Offer.Stacks, func(st platform.Stack, parameter string) string {
		return map[string]string{"names": st.Name, "guids": st.GUID(), "default": strconv.FormatBool(st.Default)}[parameter]
	})
	return reply(s, w, r, l, page, s.stack)
}

func (s *Server) getStack(w http.ResponseWriter, r *http.Request, _ platform.Who) error {
	st, err := named(s.Offer.Stacks, r.PathValue("guid"), "Stack", platform.Stack.GUID)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, s.stack(st))
}
