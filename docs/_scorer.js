// The search of the site: pages that explain a word come before the methods of its name.
var Scorer = {
  objNameMatch: 3,
  objPartialMatch: 1,
  objPrio: { 0: 3, 1: 0, 2: -5 },
  objPrioDefault: 0,
  title: 30,
  partialTitle: 15,
  term: 5,
  partialTerm: 2,
};
