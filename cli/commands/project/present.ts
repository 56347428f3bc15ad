import type { presentProjectDetails } from '../../../src/features/management/present-project-details.js';
import type { TextStyle } from '../../view/output.js';

/** One project as a table of its properties. */
export function presentProjectTable(
  view: TextStyle,
  project: ReturnType<typeof presentProjectDetails>,
): Promise<string> {
  const limits = Object.entries(project.limits).map(([name, value]) => `${name}=${value}`);
  const { passkeys } = project.signIn;
  const { publishableUploads, bucket } = project.storage;
  return view.table(
    ['property', 'value'],
    [
      ['id', project.id],
      ['name', project.name],
      ['plan', project.plan],
      ['allowed domains', project.allowedDomains.join(', ')],
      ['own limits', limits.join(', ')],
      ['uploads', publishableUploads ? 'publishable keys may upload' : 'secret keys alone'],
      ['bucket', bucket],
      ['mail from', project.providerFromEmail],
      ['sign-in by code', project.signIn.codeLogin],
      ['second factors', project.signIn.mfa],
      ['reset of factors', `after ${project.signIn.mfaResetDelay}`],
      ['passkeys', passkeys ? `${passkeys.rpId}: ${passkeys.origins.join(', ')}` : 'off'],
      ['guests', project.signIn.anonymous ? `on, kept ${project.signIn.anonymousKeep}` : 'off'],
      ['access tokens', project.signIn.tokens],
      ['addresses in mails', project.signIn.redirects.join(', ')],
      ['created', project.createdAt],
      ['updated', project.updatedAt],
    ],
  );
}
