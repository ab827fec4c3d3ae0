package bucket

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
)

// s3Settings has the options of an s3:// URL.
type s3Settings struct {
	config     []func(*config.LoadOptions) error
	s3         []func(*s3.Options)
	encryption types.ServerSideEncryption
	kmsKey     *string
	endpoint   string
	role       string
	anonymous  bool
}

// s3Options parses the options of an s3:// URL. They are those of Go CDK's s3blob, so that URLs work with both.
func s3Options(query url.Values) (*s3Settings, error) {
	o := &s3Settings{}
	for name, values := range query {
		value := values[0]
		if value == "" {
			continue
		}
		var err error
		switch name {
		case "region":
			o.config = append(o.config, config.WithRegion(value))
		case "profile":
			o.config = append(o.config, config.WithSharedConfigProfile(value))
		case "endpoint":
			o.endpoint = value
			o.s3 = append(o.s3, func(s *s3.Options) { s.BaseEndpoint = &value })
		case "role":
			if o.role = value; !strings.HasPrefix(value, "arn:") {
				err = fmt.Errorf("role=%s: want an ARN such as arn:aws:iam::123456789012:role/kumo", value)
			}
		case "anonymous":
			o.anonymous, err = yes(name, value)
		case "ssetype":
			o.encryption, err = oneOf(name, value, o.encryption.Values())
		case "kmskeyid":
			o.kmsKey = &value
		case "use_path_style", "s3ForcePathStyle", "hostname_immutable":
			err = o.switchS3(name, value, func(s *s3.Options) { s.UsePathStyle = true })
		case "disable_https":
			err = o.switchS3(name, value, func(s *s3.Options) { s.EndpointOptions.DisableHTTPS = true })
		case "accelerate":
			err = o.switchS3(name, value, func(s *s3.Options) { s.UseAccelerate = true })
		case "dualstack":
			err = o.switchConfig(name, value, config.WithUseDualStackEndpoint(aws.DualStackEndpointStateEnabled))
		case "fips":
			err = o.switchConfig(name, value, config.WithUseFIPSEndpoint(aws.FIPSEndpointStateEnabled))
		case "request_checksum_calculation":
			var when string
			when, err = oneOf(name, value, []string{"when_supported", "when_required"})
			if when == "when_required" {
				o.config = append(o.config, config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired))
			}
		// options of Go CDK that have no effect here
		case "awssdk", "rate_limiter_capacity", "response_checksum_validation":
		default:
			err = fmt.Errorf("unknown option %q", name)
		}
		if err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (o *s3Settings) switchS3(name, value string, f func(*s3.Options)) error {
	is, err := yes(name, value)
	if is {
		o.s3 = append(o.s3, f)
	}
	return err
}

func (o *s3Settings) switchConfig(name, value string, f config.LoadOptionsFunc) error {
	is, err := yes(name, value)
	if is {
		o.config = append(o.config, f)
	}
	return err
}

func yes(name, value string) (bool, error) {
	is, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("%s=%s: want true or false", name, value)
	}
	return is, nil
}

func oneOf[T ~string](name, value string, allowed []T) (T, error) {
	for _, a := range allowed {
		if strings.EqualFold(string(a), value) {
			return a, nil
		}
	}
	return "", fmt.Errorf("%s=%s: want one of %v", name, value, allowed)
}

// awsConfig finds region and credentials as AWS's own tools do, but writes nothing to standard error, and does not
// query the instance metadata service for other stores than AWS's.
func awsConfig(ctx context.Context, o *s3Settings) (aws.Config, error) {
	how := append(o.config, config.WithLogger(logging.Nop{}))
	if o.anonymous {
		how = append(how, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
	}
	endpoint := cmp.Or(o.endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	if endpoint != "" && !isAmazons(endpoint) {
		how = append(how, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	cfg, err := config.LoadDefaultConfig(ctx, how...)
	if err != nil {
		return aws.Config{}, err
	}
	cfg.Region = cmp.Or(cfg.Region, "us-east-1") // what most S3-compatible servers expect
	if o.role != "" && !o.anonymous {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), o.role))
	}
	return cfg, nil
}

// isAmazons reports whether an endpoint is one of AWS's, also a private one in a VPC.
func isAmazons(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && (strings.HasSuffix(u.Hostname(), ".amazonaws.com") ||
		strings.HasSuffix(u.Hostname(), ".amazonaws.com.cn"))
}
