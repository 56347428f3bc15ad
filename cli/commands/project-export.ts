import { declareProject } from '../../src/features/declaration/declare-project.js';
import { PROJECTS_FORMAT, type ProjectDeclaration } from '../../src/features/declaration/project-declaration.js';
import { requireProject } from '../../src/features/projects/project-store.js';
import { isOwnHandler, listWebhooks } from '../../src/features/webhooks/add-webhook.js';
import type { Field } from '../../src/features/collections/fields/field.js';
import { projectArgument } from '../ask/choose-project.js';
import { presentFieldSpec } from '../ask/present-field-spec.js';
import { defineCommand, option } from '../shell/command.js';
import { countOf } from '../view/present-amount.js';
import { replaceFile } from '../formats/replace-file.js';
import { resolveOutput } from '../shell/resolve-output.js';

export default defineCommand({
  details: [
    'Writes a file for "bsvc apply -f": all settings of the project, its collections, users, sign-in providers, mail templates, webhooks and hooks.',
    'Applying it to the same project changes nothing. It contains no keys or documents, and environment variables instead of secrets.',
    'Without --out, writes to standard output.',
  ].join('\n'),
  examples: ['bsvc project export shop --out bsvc.yaml', 'bsvc project export shop > bsvc.yaml'],
  parameters: { project: projectArgument, out: option('--out <file>', 'file to write') },
  async run(context, { project: named, out }) {
    const path = out === undefined ? null : await resolveOutput(context, out);
    const app = await context.app();
    const project = await requireProject(app, named);
    const secrets = new Map<string, string>();
    const declared = await declareProject(app, project, secrets);
    const left =
      (await listWebhooks(app, project)).filter(({ url }) => !isOwnHandler(url)).length -
      (declared.webhooks?.length ?? 0);
    if (left > 0) {
      const words = `${countOf(left, 'webhook')} ${left === 1 ? 'is' : 'are'} not in the file`;
      context.out.warn(`Warning: ${words}: of those with one address it has the oldest.`);
    }
    if (secrets.size > 0) {
      context.out.note(`Secrets are not in the file. Where it is applied, set ${[...secrets.keys()].join(', ')}.`);
    }
    const file = { format: PROJECTS_FORMAT, projects: [withSpecs(declared)] };
    const { stringify } = await import('yaml');
    const text = stringify(file, { lineWidth: 0 });
    if (path === null || out === undefined) return { json: file, quiet: text.trimEnd(), text: () => text.trimEnd() };
    // It shows how a project is guarded: its owner's alone, whichever mode the file had.
    await replaceFile(path, text);
    return { json: { file: out }, quiet: out, text: () => `Wrote ${declared.name} to ${out}.` };
  },
});

/** Fields as specs, as people write them, wherever a spec can say all of a field. */
function withSpecs(declared: ProjectDeclaration): unknown {
  const specs = (fields: readonly Field[] = []): unknown[] => fields.map((field) => presentFieldSpec(field) ?? field);
  return {
    ...declared,
    users: { ...declared.users, fields: specs(declared.users?.fields) },
    collections: declared.collections?.map((collection) => ({ ...collection, fields: specs(collection.fields) })),
  };
}
