import { readFileSync } from 'node:fs';
import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { openOutbox } from '../../platform/mail-provider/outbox.js';
import type { Project } from '../projects/project.js';
import { renderTemplate, type MailText } from './render-template.js';

export interface SystemMail {
  template: 'verification' | 'password-reset';
  to: string;
  variables: Readonly<Record<string, string | number>>;
}

/** Sends a mail that the service itself owes an end user; it costs the project no slot. */
export async function sendSystemMail(app: App, project: Project, mail: SystemMail): Promise<void> {
  const text = renderTemplate(readTemplate(mail.template), mail.variables);
  const from = `${project.name} <no-reply@localhost>`;
  await openOutbox(app.db, app.clock, app.secrets).send({ from, to: [mail.to], ...text }, new ObjectId().toHexString());
}

function readTemplate(name: string): MailText {
  return {
    subject: readPart(name, 'subject.txt').trim(),
    html: readPart(name, 'body.html'),
    text: readPart(name, 'body.txt'),
  };
}

/** Templates lie beside `dist/` when built and beside `src/` when not. */
function readPart(name: string, part: string): string {
  for (const root of ['../../../templates', '../../../../templates']) {
    try {
      return readFileSync(new URL(`${root}/mail/${name}/${part}`, import.meta.url), 'utf8');
    } catch {
      continue;
    }
  }
  throw new Error(`templates/mail/${name}/${part} is missing from the installation`);
}
