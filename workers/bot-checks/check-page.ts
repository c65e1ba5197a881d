import type { DocumentReport } from "../injected/check-script.ts";

/** Maximum number of links on a check page. A page with more links is an ordinary page with site navigation. */
const maxLinks = 8;

/** Maximum characters of a page's text that is matched. On a longer page only title and headings are matched. */
const shortText = 400;

/** Phrases of checks that require an action from the visitor. */
const actionPhrases: readonly RegExp[] = [
  /\b(?:verify|confirm|prove)(?: to us)?(?: that)? you(?:'re|’re| are)(?: really)? (?:a |not a )?(?:human|real person|robot|bot)\b/i,
  /\b(?:verify|confirm|make sure|checking if)(?: that)? you(?:'re|’re| are) not (?:a )?(?:ro)?bot\b/i,
  /^are you (?:a )?(?:human|robot|real person)\b/i,
  /\bhuman verification\b/i,
  /\bpress (?:and|&) hold\b/i,
  /\bcomplete the (?:security check|captcha)\b/i,
  /\bunusual (?:traffic|activity) from your (?:computer )?network\b/i,
  /\bpardon our interruption\b/i,
  /\b(?:bestätigen|beweisen) sie,? dass sie (?:ein mensch|kein (?:ro)?bot) sind\b/i,
  /\b(?:vérifiez|confirmez|prouvez) que vous (?:êtes (?:un )?humain|n[’']êtes pas un robot)/i,
  /\b(?:verifica|verifique|confirma|confirme|demuestra|demuestre) que (?:eres|es) (?:un )?humano\b/i,
];

/** Phrases of checks that run automatically. */
const automaticPhrases: readonly RegExp[] = [
  /\bchecking (?:your browser before|if the site connection is secure)\b/i,
  /\bverifying (?:that )?you are (?:a )?human\b/i,
];

/** Whether a document is a check page: it asks visitors to prove that they are human. */
export function isCheckPage(report: DocumentReport): boolean {
  const { title, headings, text, controls, links, hasForm } = report;
  if (text === undefined || links > maxLinks || hasForm) return false;
  const lines = text.length <= shortText ? [title, ...headings, text] : [title, ...headings];
  if (matchesAny(lines, automaticPhrases)) return true;
  return controls > 0 && matchesAny(lines, actionPhrases);
}

function matchesAny(lines: readonly string[], patterns: readonly RegExp[]): boolean {
  return patterns.some((pattern) => lines.some((line) => pattern.test(line)));
}
