/** What a caller needs: `<resource>:<verb>` is a scope, a login where a person has to act. */
type Need =
  | `${string}:${"read" | "write"}`
  /** No bearer at all. */
  | "nothing"
  | "a login"
  /** A second factor shown just now, of those who have one. */
  | "a step-up"
  /** The terms in force need not be accepted. */
  | "no terms";

/**
 * What each method asks of its callers, written by hand: a row that is missing, or says something else than the method's
 * options, is a test that fails. What it says is read from the interface and its decisions, never from the proto.
 */
export const rows: Readonly<Record<string, readonly Need[]>> = {
  "ApiKeyService.Create": ["api_keys:write", "a step-up"],
  "ApiKeyService.List": ["api_keys:read"],
  "ApiKeyService.Rotate": ["api_keys:write", "a step-up"],
  "ApiKeyService.Revoke": ["api_keys:write", "a step-up"],
  "ArchetypeService.List": ["nothing"],
  "AuditService.ListAuditLog": ["account:read"],
  "AuditService.ExportAuditLog": ["account:read"],
  "LoginService.List": ["a login"],
  "LoginService.End": ["a login", "a step-up"],
  "AuthService.SignUp": ["nothing"],
  "AuthService.LogIn": ["nothing"],
  "AuthService.LogOut": ["a login", "no terms"],
  "AuthService.VerifyEmail": ["nothing"],
  "AuthService.RequestMagicLink": ["nothing"],
  "AuthService.ConsumeMagicLink": ["nothing"],
  "AuthService.RequestPasswordReset": ["nothing"],
  "AuthService.ConfirmPasswordReset": ["nothing"],
  "AuthService.Refresh": ["nothing"],
  "MfaService.StepUp": ["a login", "no terms"],
  "MfaService.EnrolTotp": ["a login", "no terms"],
  "MfaService.ConfirmTotp": ["a login", "no terms"],
  "MfaService.RemoveTotp": ["a login", "a step-up", "no terms"],
  "AccountService.GetMe": ["account:read", "no terms"],
  "AccountService.UpdateMe": ["account:write"],
  "AccountService.GetEmailPreferences": ["account:read"],
  "AccountService.UpdateEmailPreferences": ["account:write"],
  "CredentialsService.ChangePassword": ["a login", "a step-up", "no terms"],
  "CredentialsService.RequestEmailChange": ["a login", "a step-up", "no terms"],
  "CredentialsService.ConfirmEmailChange": ["nothing"],
  "CredentialsService.UndoEmailChange": ["nothing"],
  "DeletionService.DeleteAccount": ["a login", "a step-up", "no terms"],
  "DeletionService.RestoreAccount": ["nothing"],
  "LegalService.GetCurrentLegal": ["nothing"],
  "LegalService.AcceptLegal": ["account:write", "no terms"],
  "OAuthService.Token": ["nothing"],
  "TeamService.CreateInvite": ["team:write", "a step-up"],
  "TeamService.ListInvites": ["team:read"],
  "TeamService.RevokeInvite": ["team:write"],
  "TeamService.AcceptInvite": ["a login"],
  "TeamService.ListMembers": ["team:read"],
  "TeamService.UpdateMember": ["team:write", "a step-up"],
  "TeamService.RemoveMember": ["team:write", "a step-up"],
  "TeamService.Leave": ["a login"],
  "LimitsService.GetRateLimits": ["account:read"],
  "LimitsService.GetUsage": ["account:read"],
  "SessionService.Create": ["sessions:write"],
  "SessionService.List": ["sessions:read"],
  "SessionService.Get": ["sessions:read"],
  "SessionService.Navigate": ["sessions:write"],
  "SessionService.Interact": ["sessions:write"],
  "SessionService.Wait": ["sessions:write"],
  "SessionService.GetState": ["sessions:read"],
  "SessionService.Capture": ["sessions:read"],
  "SessionService.CaptureStream": ["sessions:read"],
  "SessionService.Destroy": ["sessions:write"],
  "SessionService.Drive": ["sessions:write"],
  "SessionService.CreateCdpUrl": ["sessions:write"],
  "SessionService.DeleteCdpUrls": ["sessions:write"],
  "SessionService.GetCdpVersion": ["sessions:write"],
  "SessionService.Cdp": ["sessions:write"],
  "SessionService.Watch": ["sessions:read"],
  "ProfileService.Create": ["profiles:write"],
  "ProfileService.List": ["profiles:read"],
  "ProfileService.Get": ["profiles:read"],
  "ProfileService.Update": ["profiles:write"],
  "ProfileService.Delete": ["profiles:write"],
  "FileService.Put": ["sessions:write"],
  "FileService.Get": ["sessions:read"],
  "FileService.Delete": ["sessions:write"],
  "FileService.List": ["sessions:read"],
};
