// Projects as whoever owns them changes them: keys, settings, mail, sign-in, buckets and webhooks.

export { describeCollections, describeProject } from '../../src/features/project-types/described-project.js';
export { writeTypeFile } from '../../src/features/project-types/type-file.js';
export type { Project } from '../../src/features/projects/project.js';
export { updateProject } from '../../src/features/projects/update-project.js';
export { requireProject, CALLERS } from '../../src/features/projects/project-store.js';
export { createProject } from '../../src/features/projects/create-project.js';
export { createKey, revokeKey, rotateKey } from '../../src/features/projects/manage-keys.js';
export { presentKey } from '../../src/features/projects/project-store.js';
export type { SignInSettings } from '../../src/features/projects/sign-in-settings.js';
export { changeProject, planProjects, type ProjectPlan } from '../../src/features/declaration/plan-projects.js';
export { declareProject } from '../../src/features/declaration/declare-project.js';
export { setMailSettings, findByokKey } from '../../src/features/mail/project-mail.js';
export { setTemplate } from '../../src/features/mail/mail-template.js';
export {
  setSocialProvider,
  presentSocialProvider,
  removeSocialProvider,
  socialProviderStore,
} from '../../src/features/users/social/social-provider.js';
export { setBucket } from '../../src/features/files/bucket/project-bucket.js';
export { measureStorage } from '../../src/features/files/list-files.js';
export { rotateTokenSecret, findTokenKey, requireSigningKey } from '../../src/features/projects/token-secret.js';
export { sendMail, sendTestMail } from '../../src/features/mail/sending/send-mail.js';
export { addWebhook } from '../../src/features/webhooks/add-webhook.js';
export { deleteProject } from '../../src/features/management/delete-project.js';
export { testWebhook } from '../../src/features/webhooks/deliveries/try-again.js';
export { withParsedCollections } from '../../cli/formats/read-declaration-file.js';
export { applyProjects } from '../../src/features/declaration/apply-projects.js';
export { readProjectsFile, type ProjectDeclaration } from '../../src/features/declaration/project-declaration.js';
export { OVERRIDABLE_LIMITS } from '../../src/features/plans/plan-limits.js';
export { MAX_BRIEF_BYTES, writeBrief } from '../../src/features/project-types/project-brief.js';
export { SYSTEM } from '../../src/platform/actor.js';
