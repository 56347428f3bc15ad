import type { Refusal } from '../api.js';
import { findMistake, type Mistake } from './mistake.js';

/** What the server says of rules that are not saved. */
export interface Review {
  findings: (Pick<Refusal, 'code' | 'message'> & Partial<Pick<Refusal, 'details'>>)[];
  loosens: string[];
}

type Texts = Readonly<Record<string, string>>;

export function mistakesOf(review: Review | null, texts: Texts): Mistake[] {
  return (review?.findings ?? []).flatMap((each) => findMistake(each, texts) ?? []);
}

/** What stands in the way of the rules besides mistakes, and what they would loosen. */
export function Reviewed({ review, texts }: { review: Review | null; texts: Texts }) {
  if (!review) return null;
  const { findings, loosens } = review;
  if (findings.length + loosens.length === 0) return <p role="status">Nothing is wrong with these rules.</p>;
  const others = findings.filter((each) => !findMistake(each, texts)).map(({ message }) => message);
  const lines = [...others, ...loosens.map((line) => `Lets somebody do more than now: ${line}`)];
  return (
    <div role="status">
      {lines.map((line) => (
        <p key={line}>{line}</p>
      ))}
    </div>
  );
}
