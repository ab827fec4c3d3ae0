package bucket

import (
	"cmp"
	"context"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
)

// credentials are those that a URL's options and the environment name, as Go CDK finds them, but without a word on
// standard error, and without asking the machine for a role where the store is none of AWS's. It is nil where the URL
// has none to be sent.
func credentials(ctx context.Context, options url.Values) (aws.CredentialsProvider, error) {
	if isAnonymous(options) {
		return nil, nil
	}
	how := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if profile := options.Get("profile"); profile != "" {
		how = append(how, config.WithSharedConfigProfile(profile))
	}
	if region := options.Get("region"); region != "" {
		how = append(how, config.WithRegion(region))
	}
	endpoint := cmp.Or(options.Get("endpoint"), os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	if endpoint != "" && !isAmazons(endpoint) {
		how = append(how, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	cfg, err := config.LoadDefaultConfig(ctx, how...)
	if err != nil {
		return nil, err
	}
	if role := options.Get("role"); role != "" {
		return aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), role)), nil
	}
	return cfg.Credentials, nil
}

// isAnonymous reports whether options say that there are no credentials.
func isAnonymous(options url.Values) bool {
	is, err := strconv.ParseBool(options.Get("anonymous"))
	return is && err == nil
}

// isAmazons reports whether an endpoint is one of AWS's, as a private one of a network there is.
func isAmazons(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && (strings.HasSuffix(u.Hostname(), ".amazonaws.com") ||
		strings.HasSuffix(u.Hostname(), ".amazonaws.com.cn"))
}
