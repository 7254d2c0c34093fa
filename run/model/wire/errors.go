package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"

	"github.com/go-faster/errors"

	"agentrun/run/model"
)

// ErrConfig says that a Config cannot work. New returns it, with the reason.
var ErrConfig = errors.New("the model provider's configuration is wrong")

// errSilence ends an attempt that has waited long enough.
var errSilence = errors.New("silence")

// Broken is an attempt whose answer is none.
func Broken(format string, args ...any) error {
	return &model.Error{Kind: model.ErrUnavailable, Message: fmt.Sprintf(format, args...)}
}

// ErrIncomplete is the answer that ends before it says why.
func ErrIncomplete() error { return Broken("the answer ended in the middle") }

// failure says what an error of an attempt means.
func (x *Exchange) failure(ctx context.Context, err error) model.Error {
	var failed *model.Error
	var sent *url.Error
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	if x.refused != nil {
		err = x.refused
	}
	result := model.Error{Kind: model.ErrUnavailable}
	switch {
	case errors.As(err, &failed):
		result = *failed
	case errors.Is(context.Cause(ctx), errSilence) && x.answered:
		result.Message = fmt.Sprintf("the answer stopped in the middle, with no byte for %s", x.client.betweenBytes)
	case errors.Is(context.Cause(ctx), errSilence):
		result.Message = fmt.Sprintf("no answer for %s", x.client.firstByte)
	case !x.sent:
		// The request never left: another attempt would be the same.
		result.Kind, result.Message = model.ErrRefused, err.Error()
	case errors.As(err, &sent):
		result.Message = sent.Err.Error()
	case errors.As(err, &syntax), errors.As(err, &mismatch):
		result.Message = "the answer has JSON that cannot be understood: " + err.Error()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		result.Message = "the connection ended in the middle of the answer"
	default:
		result.Message = "the answer broke off: " + err.Error()
	}
	result.Message = x.client.clean(result.Message)
	return result
}
