package v3

// FeatureFlag is a switch that an administrator can set for everybody.
type FeatureFlag struct {
	Name      string  `json:"name"`
	Enabled   bool    `json:"enabled"`
	UpdatedAt Time    `json:"updated_at"`
	Message   *string `json:"custom_error_message"`
	Links     Links   `json:"links"`
}

// FeatureFlagChange is a request to set it.
type FeatureFlagChange struct {
	Enabled *bool   `json:"enabled"`
	Message *string `json:"custom_error_message"`
}
