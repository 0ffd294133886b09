package v3

import "github.com/proa-dev/proa/kit/fault"

// Error is one refusal.
type Error struct {
	Code   int    `json:"code"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

// Errors is the body of a refusal.
type Errors struct {
	Errors []Error `json:"errors"`
}

// The titles that faults are given where their kind does not decide. A fault carries its title as its code.
const (
	InvalidAuthToken  = "CF-InvalidAuthToken"
	NotAuthenticated  = "CF-NotAuthenticated"
	NotAuthorized     = "CF-NotAuthorized"
	BadQueryParameter = "CF-BadQueryParameter"
	MessageParseError = "CF-MessageParseError"
	InsufficientScope = "CF-InsufficientScope"
	OrgSuspended      = "CF-OrgSuspended"
	UnknownRequest    = "CF-NotFound"
)

// codes are the numbers of the titles.
var codes = map[string]int{
	InvalidAuthToken: 1000, MessageParseError: 1001, UnknownRequest: 10000, "UnknownError": 10001, NotAuthenticated: 10002, NotAuthorized: 10003,
	"CF-BadRequest": 10004, BadQueryParameter: 10005, InsufficientScope: 10007, "CF-UnprocessableEntity": 10008, "CF-ResourceNotFound": 10010,
	"CF-RateLimitExceeded": 10013, "CF-ServiceUnavailable": 10015, OrgSuspended: 10017, "CF-UniquenessError": 10016,
	"CF-RequestTooLarge": 10020, "CF-AsyncServiceInstanceOperationInProgress": 60016, "CF-AsyncServiceBindingOperationInProgress": 90008, "CF-StagingError": 170001, "CF-ServiceBrokerNotRemovable": 270010, "CF-FeatureDisabled": 330002,
}

// titles are those of faults that bring none.
var titles = map[fault.Kind]string{
	fault.KindInternal: "UnknownError", fault.KindInvalid: "CF-BadRequest", fault.KindUnauthorized: InvalidAuthToken, fault.KindForbidden: NotAuthorized,
	fault.KindNotFound: "CF-ResourceNotFound", fault.KindConflict: "CF-UniquenessError", fault.KindStale: "CF-UniquenessError",
	fault.KindTooLarge: "CF-RequestTooLarge", fault.KindUnprocessable: "CF-UnprocessableEntity", fault.KindTooMany: "CF-RateLimitExceeded",
	fault.KindUnavailable: "CF-ServiceUnavailable",
}

// ErrorsOf writes a fault as the protocol does.
func ErrorsOf(f *fault.Error) Errors {
	title := f.Code
	code, known := codes[title]
	if !known {
		title = titles[f.Kind]
		code = codes[title]
	}
	details := f.Details
	if len(details) == 0 {
		details = []string{f.Detail}
	}
	var e Errors
	for _, d := range details {
		e.Errors = append(e.Errors, Error{Code: code, Title: title, Detail: d})
	}
	return e
}
