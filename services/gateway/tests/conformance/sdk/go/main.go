// Command judge runs one scenario with openai-go and prints what the SDK made of it as one line of JSON.
//
// Usage: judge BASE_URL KEY stream|plain|models
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

type failure struct {
	Class   string `json:"class"`
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

type result struct {
	Text   string   `json:"text"`
	Finish string   `json:"finish"`
	Chunks int      `json:"chunks"`
	Models []string `json:"models,omitempty"`
	Error  *failure `json:"error,omitempty"`
}

func (r *result) fail(err error) {
	r.Error = &failure{Class: fmt.Sprintf("%T", err), Message: err.Error()}
	var apiError *openai.Error
	if errors.As(err, &apiError) {
		r.Error.Status = apiError.StatusCode
		r.Error.Code = apiError.Code
	}
}

func main() {
	client := openai.NewClient(
		option.WithBaseURL(os.Args[1]), option.WithAPIKey(os.Args[2]), option.WithMaxRetries(0),
	)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	request := openai.ChatCompletionNewParams{
		Model:    "m",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
	}
	var out result
	switch os.Args[3] {
	case "stream":
		stream := client.Chat.Completions.NewStreaming(ctx, request)
		for stream.Next() {
			out.Chunks++
			for _, choice := range stream.Current().Choices {
				out.Text += choice.Delta.Content
				if choice.FinishReason != "" {
					out.Finish = choice.FinishReason
				}
			}
		}
		if err := stream.Err(); err != nil {
			out.fail(err)
		}
	case "plain":
		reply, err := client.Chat.Completions.New(ctx, request)
		if err != nil {
			out.fail(err)
			break
		}
		out.Text, out.Finish = reply.Choices[0].Message.Content, reply.Choices[0].FinishReason
	case "models":
		page, err := client.Models.List(ctx)
		if err != nil {
			out.fail(err)
			break
		}
		for _, model := range page.Data {
			out.Models = append(out.Models, model.ID)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		panic(err)
	}
}
